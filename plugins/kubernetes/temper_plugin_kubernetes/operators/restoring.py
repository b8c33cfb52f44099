"""Requests restoring of nodes, and waits for the answer of each."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from attrs import define, evolve, field, frozen

from temper_core import InputError, MachineError, did_you_mean
from temper_kube.api_server import METADATA, ApiServer
from temper_kube.failures import (
    CredentialsError,
    ForbiddenError,
    UnreachableError,
)
from temper_kube.list_pages import Json
from temper_kube.list_watch import ListWatch, Query
from temper_kube.watch_status import WatchStatus
from temper_plugin_kubernetes.annotation_requests import KILL_SWITCH, RESTORE, UNINSTALL
from temper_plugin_kubernetes.annotations import FORMER, LEFT, PREFIX, RESTORED, STATUS
from temper_plugin_kubernetes.node import NODES
from temper_plugin_kubernetes.operators.fleet import read_agents
from temper_plugin_kubernetes.operators.node_patches import Change, NodePatches

FILES_MAY_REMAIN = "files may remain on the node: run `temper restore` there"
WITHDRAWN = "false"
"""Withdraws a request of a former Node object. It stays, for an agent that reads it later."""
STEP_S = 0.2
FOR_ALL = (UnreachableError, CredentialsError)
"""What ends the command: it is no matter of one node."""


@frozen
class RestoreOutcome:
    """The outcome for one node: a word, and details."""

    node: str
    state: str
    detail: str = ""

    @property
    def needs_a_look(self) -> bool:
        """Whether the node may not be fully restored."""
        return self.state in ("unanswered", "no_agent", "restored_in_part", "refused")

    @property
    def text(self) -> str:
        """The outcome as a line of text."""
        return f"{self.node}: {_TOLD[self.state]}{f': {self.detail}' if self.detail else ''}"


_TOLD = {
    "restored": "restored",
    "restored_in_part": "restored, except for foreign or unremovable parts",
    "no_agent": "no agent runs here; its annotations were removed",
    "nothing": "the node has no agent and no annotations of one",
    "unanswered": "no answer",
    "released": "released; the agent works again",
    "not_requested": "it has no request to withdraw",
    "refused": "the request cannot be written",
    "vanished": "the node was deleted",
}

Tell = Callable[[RestoreOutcome], None]


@define
class _Outcomes:
    """The outcomes so far. ``tell`` gets each."""

    tell: Tell
    known: list[RestoreOutcome] = field(factory=list, init=False)
    _has_right: bool = field(default=False, init=False)
    """Whether the answer to a change was other than a missing right."""

    def note(self, outcome: RestoreOutcome) -> None:
        """Add an outcome."""
        self.known.append(outcome)
        self.tell(outcome)

    @contextmanager
    def refusals_of(self, node: str) -> Iterator[None]:
        """Note a refused change as the outcome of *node*: the other nodes must not wait for it.

        A right that is missing for the first change is an error: it is one for all nodes.
        """
        try:
            yield
        except FOR_ALL:
            raise
        except MachineError as error:
            if isinstance(error, ForbiddenError) and not self._has_right:
                raise
            self.note(RestoreOutcome(node, "refused", str(error)))
        self._has_right = True


class _Answers:
    """Follows the nodes. Keeps the annotations of each, and signals changes."""

    def __init__(self, asked: str) -> None:
        self.asked = asked
        self.annotations: dict[str, Mapping[str, str]] = {}
        self.changed_at = threading.Event()

    def of(self, name: str) -> set[str]:
        """Return the keys of a node's annotations, as far as they are known."""
        return set(self.annotations.get(name, ()))

    def replaced(self, items: Iterable[Json]) -> None:
        """Replace all nodes."""
        # At once: a node that is not there yet would count as deleted.
        self.annotations = dict(map(_annotated, items))
        self.changed_at.set()

    def changed(self, kind: str, item: Json) -> None:
        """Record a change of a node."""
        if kind == "DELETED":
            self.annotations.pop(item["metadata"]["name"], None)
        else:
            name, annotations = _annotated(item)
            self.annotations[name] = annotations
        self.changed_at.set()

    def status_changed(self) -> None:
        """Nothing depends on whether the watch is up."""


def restore_nodes(
    api: ApiServer,
    namespace: str,
    names: Collection[str],
    *,
    timeout_s: float,
    is_uninstall: bool,
    tell: Tell,
) -> list[RestoreOutcome]:
    """Request restoring of the nodes called *names* (empty: all), and wait for their answers.

    The agents are those in *namespace*.

    With *is_uninstall* all annotations are removed from the Node objects, with or without an
    answer: the agents are about to be removed. Raises InputError for an unknown node or namespace,
    and ForbiddenError if the right to change the first node is missing.
    """
    present = _chosen(api, names)
    agents = _with_agents(api, namespace)
    outcomes = _Outcomes(tell)
    value = UNINSTALL if is_uninstall else datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    asking = {RESTORE: value, RESTORED: None, LEFT: None}
    changes: dict[str, Change] = {}
    for name, annotations in sorted(present.items()):
        has_agent = name in agents if agents is not None else STATUS in annotations
        changes[name] = asking if has_agent else dict.fromkeys(_removable(annotations))
    answers = _Answers(value)
    with NodePatches(api.access) as patches:
        waiting = _asked(patches, changes, asking, outcomes)
        for told in _awaited(api, waiting, answers, timeout_s):
            restored = [
                RestoreOutcome(name, state, _with_advice(state, detail, is_uninstall=is_uninstall))
                for name, state, detail in told
            ]
            cleaned = _cleaned(patches, restored, answers) if is_uninstall else restored
            for outcome in cleaned:
                outcomes.note(outcome)
    return outcomes.known


def release_nodes(api: ApiServer, names: Collection[str], tell: Tell) -> list[RestoreOutcome]:
    """Withdraw the request, so that the agents work again."""
    outcomes = _Outcomes(tell)
    present = sorted(_chosen(api, names).items())
    changes = {name: _withdrawal(annotations) for name, annotations in present}
    with NodePatches(api.access) as patches:
        answers = patches.made({name: change for name, change in changes.items() if change})
        for name, change in changes.items():
            if change:
                with outcomes.refusals_of(name):
                    next(answers).result()
                    outcomes.note(RestoreOutcome(name, "released"))
            elif names:
                outcomes.note(RestoreOutcome(name, "not_requested"))
    return outcomes.known


def _withdrawal(annotations: Mapping[str, str]) -> Change:
    """Return the change that withdraws the request of a node, empty if it has none."""
    if _stands_from_former(annotations):
        return {RESTORE: WITHDRAWN}
    return {RESTORE: None} if RESTORE in annotations else {}


def _stands_from_former(annotations: Mapping[str, str]) -> bool:
    """Whether the agent obeys a request to restore of a former Node object."""
    return RESTORE in annotations.get(FORMER, "").split(",")


def _asked(
    patches: NodePatches, changes: Mapping[str, Change], asking: Change, outcomes: _Outcomes
) -> set[str]:
    """Make the *changes*. Return the nodes whose agents were asked. An empty change is none."""
    waiting = set()
    answers = patches.made({name: change for name, change in changes.items() if change})
    for name, change in changes.items():
        if not change:
            outcomes.note(RestoreOutcome(name, "nothing"))
            continue
        with outcomes.refusals_of(name):
            exists = next(answers).result()
            if change is not asking:
                outcomes.note(RestoreOutcome(name, "no_agent", FILES_MAY_REMAIN))
            elif exists:
                waiting.add(name)
    return waiting


def _annotated(node: Json) -> tuple[str, Mapping[str, str]]:
    """Return the name of a node, and its annotations."""
    metadata = node["metadata"]
    return metadata["name"], metadata.get("annotations") or {}


def _chosen(api: ApiServer, names: Collection[str]) -> dict[str, Mapping[str, str]]:
    """Return the annotations of the chosen nodes."""
    annotations_by_node = dict(map(_annotated, api.list(NODES, accept=METADATA)))
    strangers = sorted(set(names) - set(annotations_by_node))
    if strangers:
        meant = did_you_mean(strangers[0], annotations_by_node) if len(strangers) == 1 else ""
        named = ", ".join(map(repr, strangers))
        raise InputError(f"there is no node {named} in this cluster{meant}")
    return {name: annotations_by_node[name] for name in names or annotations_by_node}


def _with_agents(api: ApiServer, namespace: str) -> set[str] | None:
    """Return the nodes with a running agent. None if pods may not be listed."""
    try:
        pods = read_agents(api, namespace)
        if not pods:
            _ensure_exists(api, namespace)
    except ForbiddenError:
        return None
    return {pod.node for pod in pods if not pod.is_failing and pod.phase == "Running"}


def _ensure_exists(api: ApiServer, namespace: str) -> None:
    """Raise InputError if there is no *namespace*: all agents would seem to be gone."""
    with suppress(ForbiddenError):
        if api.find(f"/api/v1/namespaces/{namespace}") is None:
            raise InputError(f"there is no namespace {namespace}: name Temper's with --namespace")


def _cleaned(
    patches: NodePatches, outcomes: Iterable[RestoreOutcome], answers: _Answers
) -> Iterator[RestoreOutcome]:
    """Remove the agents' annotations from the Node objects. Yield each outcome with what remains.

    The request and the answer are removed, whether the watch has shown them or not.
    """
    asked = {RESTORE, RESTORED, LEFT}
    by_node = {each.node: each for each in outcomes}
    changes = {name: dict.fromkeys(_removable(answers.of(name) | asked)) for name in by_node}
    for outcome, removal in zip(by_node.values(), patches.made(changes), strict=True):
        yield _with_remains(outcome, removal)


def _with_remains(outcome: RestoreOutcome, removal: Future[bool]) -> RestoreOutcome:
    """Return the outcome of a node, and of the *removal* of its annotations."""
    try:
        removal.result()
    except FOR_ALL:
        raise
    except MachineError as error:
        state = "restored_in_part" if outcome.state == "restored" else outcome.state
        remains = f"its annotations remain: {error}"
        detail = f"{outcome.detail}; {remains}" if outcome.detail else remains
        return evolve(outcome, state=state, detail=detail)
    return outcome


def _removable(annotations: Iterable[str]) -> list[str]:
    """Return Temper's keys, except the kill switch, which belongs to the operator."""
    return [key for key in annotations if key.startswith(PREFIX) and key != KILL_SWITCH]


def _awaited(
    api: ApiServer, waiting: set[str], answers: _Answers, timeout_s: float
) -> Iterator[list[tuple[str, str, str]]]:
    """Yield lists of (node, state, detail) with answers, and last the nodes without one."""
    if not waiting:
        return
    status = WatchStatus("nodes")
    watch = ListWatch(api.access, Query(NODES, metadata_only=True), answers, status)
    watch.start()
    deadline = time.monotonic() + timeout_s
    try:
        while waiting and time.monotonic() < deadline:
            answers.changed_at.wait(STEP_S)
            answers.changed_at.clear()
            told = _answered(waiting, answers, status)
            waiting.difference_update(name for name, _, _ in told)
            yield told
    finally:
        watch.close()
    why = f"within {timeout_s:g} s" if status.has_listed.is_set() else status.reason
    yield [(name, "unanswered", why) for name in sorted(waiting)]


def _answered(
    waiting: Collection[str], answers: _Answers, status: WatchStatus
) -> list[tuple[str, str, str]]:
    outcomes = []
    for name in sorted(waiting):
        annotations = answers.annotations.get(name)
        if annotations is None:
            if status.has_listed.is_set():
                outcomes.append((name, "vanished", ""))
        elif RESTORED in annotations and annotations.get(RESTORE) == answers.asked:
            # The first list may be older than the request, and show the answer to a former one.
            left = annotations.get(LEFT, "")
            outcomes.append((name, "restored_in_part" if left else "restored", left))
    return outcomes


def _with_advice(state: str, detail: str, *, is_uninstall: bool) -> str:
    if state != "unanswered":
        return detail
    if is_uninstall:
        return f"{detail}; {FILES_MAY_REMAIN}"
    return f"{detail}; the request stays until the node's agent receives it"
