"""The report of a cluster: advice for each container of a workload, as JSON."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import asdict, evolve, frozen

from temper_core import MachineError, rfc3339
from temper_core.console import Row, named
from temper_core.observed import count
from temper_kube.access import Access
from temper_kube.agents import Agent, Away, roster
from temper_kube.api_server import METADATA, ApiServer
from temper_kube.failures import ForbiddenError
from temper_kube.proxied import require_proxy
from temper_plugin_rightsizer.advice.advising import advise, confidence
from temper_plugin_rightsizer.advice.leaks import leak_of
from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.advice.pods import with_pod_bounds
from temper_plugin_rightsizer.advice.pressure import pressure_notes
from temper_plugin_rightsizer.advice.quotas import with_quotas
from temper_plugin_rightsizer.advice.suggestions import suggestions
from temper_plugin_rightsizer.advice.surroundings import Surroundings, consider
from temper_plugin_rightsizer.advice.use import used
from temper_plugin_rightsizer.cluster.agents import ask_agents
from temper_plugin_rightsizer.cluster.demands import ClusterDemand, WorkloadDemand
from temper_plugin_rightsizer.cluster.machines import ClusterMachines
from temper_plugin_rightsizer.cluster.prices import DISAGREE, AgreedPrices
from temper_plugin_rightsizer.cluster.surroundings import ClusterSurroundings
from temper_plugin_rightsizer.fleet.demands import Key
from temper_plugin_rightsizer.fleet.workloads import Named, Owners
from temper_plugin_rightsizer.node.document import SCHEMA_VERSION
from temper_plugin_rightsizer.prices.settings import UNKNOWN, Prices

SOURCE = "agents"
REPLICASETS, JOBS = "/apis/apps/v1/replicasets", "/apis/batch/v1/jobs"


@frozen
class Question:
    """A question to the agents in *namespace*: the history of *hours*, None for theirs.

    The report has the workloads of the namespaces *only*, or of all if there are none. Without
    *prices* it has those on which the agents agree.
    """

    access: Access
    namespace: str
    hours: int | None = None
    only: frozenset[str] = frozenset()
    prices: Prices | None = None


@frozen
class _Answers:
    """The agents without an answer, and the nodes whose answer has not all of their demand.

    With the longest window, and the prices of most agents.
    """

    away: Sequence[Away]
    incomplete: Sequence[str]
    window_s: int
    prices: Prices | None


def report(
    question: Question, options: AdviceOptions, shown: Callable[[int, int], None]
) -> Mapping[str, Any]:
    """Return advice for the workloads of a cluster, by all agents that answer.

    *shown* gets the number of agents asked, and that of all. Raises MachineError if no agent
    answers, or a right is missing.
    """
    with ApiServer(question.access) as api:
        known = roster(api, question.namespace)
        if not known.agents:
            raise MachineError(f"no agent is ready in the namespace {question.namespace}")
        first = known.agents[0]
        require_proxy(api, "pods", first.pod, first.namespace)
        owners, unknown = _owners(api)
        surroundings = ClusterSurroundings(owners)
        surroundings.read(api)
    demand = ClusterDemand(owners, surroundings.places)
    answers = _ask(question, known.agents, demand, shown)
    away = [*known.away, *answers.away]
    prices = question.prices or answers.prices
    rows = [
        _row(key, found, surroundings.of(*key), options)
        for key, found in demand.rows()
        if not question.only or key[0].namespace in question.only
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "source": SOURCE,
        "at": rfc3339(time.time()),
        "window_s": answers.window_s,
        "options": asdict(options),
        "notes": [
            *_notes(away, demand),
            *_incomplete(answers.incomplete),
            *known.unknown,
            *unknown,
            *surroundings.unknown,
            *(() if prices else (DISAGREE,)),
            *pressure_notes(rows),
        ],
        "away": [asdict(each) for each in sorted(away, key=lambda each: each.node)],
        "left_out": demand.left_out,
        **_machines(surroundings.machines, prices or Prices()),
        "containers": with_quotas(
            with_pod_bounds(rows, surroundings.pod_bounds), surroundings.quotas
        ),
    }


def _ask(
    question: Question,
    agents: Sequence[Agent],
    demand: ClusterDemand,
    shown: Callable[[int, int], None],
) -> _Answers:
    """Add the answers of *agents* to *demand*. Raise MachineError if there are none."""
    query = {"demand": "1", **({"hours": str(question.hours)} if question.hours else {})}
    away, incomplete, window_s, prices = list[Away](), list[str](), 0, AgreedPrices()
    for asked, (agent, answer) in enumerate(ask_agents(question.access, agents, query), 1):
        if isinstance(answer, Away):
            away.append(answer)
        else:
            demand.add(answer, agent.node)
            window_s = max(window_s, count(answer, "window_s") or 0)
            prices.add(answer)
            if answer.get("is_incomplete") is True:
                incomplete.append(agent.node)
        shown(asked, len(agents))
    if len(away) == len(agents):
        raise MachineError(f"no agent answers; that of {away[-1].node}: {away[-1].why}")
    return _Answers(away, incomplete, window_s, prices.agreed)


def _machines(machines: ClusterMachines, prices: Prices) -> Mapping[str, Any]:
    """Return the machine types of the nodes, and the prices of a core and a GiB in their mean."""
    mean = machines.mean(prices)
    core_hour, gib_hour = mean or (prices.core_hour, prices.gib_hour)
    source = "the mean of the nodes' machine types" if mean else UNKNOWN
    return {
        "machines": list(machines.rows(prices)),
        "prices": {
            "core_hour": round(core_hour, 6),
            "gib_hour": round(gib_hour, 6),
            "source": source,
        },
    }


def _notes(away: Iterable[Away], demand: ClusterDemand) -> Iterable[str]:
    by_reason: dict[str, list[str]] = {}
    for each in away:
        by_reason.setdefault(each.why, []).append(each.node)
    for why, nodes in sorted(by_reason.items()):
        yield f"the demand on {named(sorted(nodes))} is not known: {why}"
    if demand.damaged:
        yield f"{demand.damaged} containers have damaged demand, and are left out"
    for node, containers in sorted(demand.elsewhere.items()):
        yield (
            f"the agent of {node} tells of {containers} containers of pods that are not there, "
            "and are left out"
        )


def _incomplete(nodes: Sequence[str]) -> Iterable[str]:
    if nodes:
        yield (
            f"the demand on {named(sorted(nodes))} is incomplete: GET /rightsize of the agents "
            "there says why"
        )


def _row(
    key: Key, found: WorkloadDemand, around: Surroundings, options: AdviceOptions
) -> dict[str, Any]:
    workload, container = key
    leak, told = leak_of(found.growths)
    advice = advise(found.demand, found.current, options, leak)
    advice = evolve(
        advice,
        learned_s=found.learned_s,
        confidence=confidence(found.learned_s),
        reasons=(*advice.reasons, *told),
    )
    advice = consider(advice, around)
    return {
        "namespace": workload.namespace,
        "pod": workload.name if workload.kind == "Pod" else "",
        "owner": workload.owner,
        "container": container,
        "container_kind": around.kind,
        "managed_by": around.updater,
        "replicas": len(found.pods),
        **asdict(advice),
        "treatment": asdict(found.treatment),
        "suggestions": [asdict(each) for each in suggestions(advice, found.treatment)],
        "used": used(found.demand, options),
    }


def _owners(api: ApiServer) -> tuple[Owners, tuple[str, ...]]:
    """Return the controllers of ReplicaSets and Jobs, and what could not be listed."""
    found: list[Named] = []
    unknown = []
    for path in (REPLICASETS, JOBS):
        try:
            found.append(_controllers(api.each(path, accept=METADATA)))
        except ForbiddenError as error:
            found.append({})
            unknown.append(f"the owners of {path.rpartition('/')[2]} are not known: {error}")
    replicasets, jobs = found
    return Owners(replicasets=replicasets, jobs=jobs), tuple(unknown)


def _controllers(items: Iterable[Row]) -> Named:
    controllers = {}
    for item in items:
        metadata = item["metadata"]
        for owner in metadata.get("ownerReferences") or ():
            if owner.get("controller"):
                place = metadata.get("namespace", ""), metadata["name"]
                controllers[place] = owner["kind"], owner["name"]
    return controllers
