"""The plan in force as a JSON document, from the agent or from a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from attrs import evolve, field, frozen
from attrs.validators import and_, ge, in_, le, min_len

from temper_core.errors import InputError, MachineError
from temper_core.plan.render import SCHEMA_VERSION, machine_summary
from temper_core.records.engine_matchers import Matcher
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.tiers import LayerKind, Tier

if TYPE_CHECKING:
    from temper_core.settings import Settings

THE_AGENT = "the agent"
NONE_IN_FORCE = "no plan is in force"
MOST_CPUS = 8_192
Model = TypeVar("Model")


@frozen
class PlanInForce:
    """The plan that a change starts from. ``plan`` is None if no engine runs.

    ``can_swap`` is None if the source does not have it. ``remark`` is the reason why there is no
    plan, or why engines cannot be swapped.
    """

    source: str
    plan: LayerPlan | None
    generation: int = 0
    can_swap: bool | None = None
    remark: str = ""


def ask_in_force(settings: "Settings", machine: MachineShape) -> PlanInForce:
    """Return the plan in force of this node's agent. Raise NoAgentError if no agent answers.

    *machine* is taken for the agent's if the counts of CPUs, cores and so on are equal.
    """
    from temper_core.client import ask_agent

    try:
        document = ask_agent("/plan", settings=settings)
    except InputError as error:
        if NONE_IN_FORCE not in str(error):
            raise
        return PlanInForce(THE_AGENT, None, remark=str(error).removeprefix("the agent answers: "))
    try:
        return _in_force(document, machine, THE_AGENT)
    except InputError as error:
        raise MachineError(f"the agent's answer to /plan is not a plan: {error}") from error


def read_in_force(file: Path, machine: MachineShape) -> PlanInForce:
    """Read the output of ``temper plan --output json``. Raise DocumentError if it is no plan."""
    from temper_core.documents import read_json

    return _in_force(read_json(file), machine, str(file))


@frozen
class _MachineDocument:
    architecture: str
    cpus: int = field(validator=and_(ge(1), le(MOST_CPUS)))
    cores: int = field(validator=and_(ge(1), le(MOST_CPUS)))
    threads_per_core: int = field(validator=and_(ge(1), le(8)))
    sockets: int
    numa_nodes: int
    llcs: int


@frozen
class _LayerDocument:
    name: str
    kind: LayerKind
    tier: Tier | None
    cpus_min: int | None
    cpus_max: int | None
    util_range: tuple[float, float] | None
    exclusive: bool
    protected: bool
    preempt: bool
    slice_us: int
    weight: int
    matches: tuple[tuple[Mapping[str, str | bool | int], ...], ...]
    pods: tuple[str, ...]
    group_pods: tuple[str, ...]
    demoted: bool = False
    reason: str = ""
    hint: int | None = None


@frozen
class _PlanDocument:
    schema_version: int = field(validator=in_([SCHEMA_VERSION]))
    machine: _MachineDocument
    layers: tuple[_LayerDocument, ...] = field(validator=min_len(1))
    generation: int = 0
    steered: bool = False
    can_swap: bool | None = None
    why_no_swap: str = ""


def _in_force(document: object, machine: MachineShape, source: str) -> PlanInForce:
    from temper_core.documents import fit

    parsed = fit(_without_news(document), _PlanDocument, source=source)
    layers = tuple(_layer(layer) for layer in parsed.layers)
    hints = {layer.name: layer.hint for layer in parsed.layers if layer.hint is not None}
    plan = LayerPlan(
        _machine(parsed.machine, machine), layers, hints=hints if parsed.steered else {}
    )
    return PlanInForce(source, plan, parsed.generation, parsed.can_swap, parsed.why_no_swap)


def _without_news(document: object) -> object:
    from temper_core.documents import known_keys

    if not isinstance(document, Mapping):
        return document
    known = known_keys(document, _PlanDocument)
    layers, machine = known.get("layers"), known.get("machine")
    if isinstance(layers, list):
        known["layers"] = [known_keys(layer, _LayerDocument) for layer in layers]
    if machine is not None:
        known["machine"] = known_keys(machine, _MachineDocument)
    return known


def _layer(row: _LayerDocument) -> Layer:
    blocks = [
        [Matcher(*pair) for condition in block for pair in condition.items()]
        for block in row.matches
    ]
    by_group = set(row.group_pods)
    return Layer(
        name=row.name,
        kind=row.kind,
        matches=tuple(map(tuple, blocks)),
        tier=row.tier,
        cpus_min=row.cpus_min,
        cpus_max=row.cpus_max,
        util_range=row.util_range,
        exclusive=row.exclusive,
        protected=row.protected,
        preempt=row.preempt,
        slice_us=row.slice_us,
        weight=row.weight,
        members=tuple(key for key in row.pods if key not in by_group),
        demoted=row.demoted,
        reason=row.reason,
        group_members=row.group_pods,
    )


def _machine(counts: _MachineDocument, local: MachineShape) -> MachineShape:
    """Return *local* if its counts equal the document's, else a machine of those counts."""
    from attrs import asdict

    if machine_summary(local) == asdict(counts):
        return local
    uniform = MachineShape.uniform(
        counts.cores, counts.threads_per_core, architecture=counts.architecture
    )
    return evolve(uniform, cpus=uniform.cpus[: counts.cpus])
