"""Asking nodes to be restored, and waiting for each to say that it was."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime

from attrs import frozen

from temper_core import InputError
from temper_kube.api_server import METADATA, ApiServer
from temper_kube.failures import ForbiddenError, NotFoundError, RefusalError
from temper_kube.list_pages import Json
from temper_kube.list_watch import ListWatch, Query
from temper_kube.watch_status import WatchStatus
from temper_plugin_kubernetes.annotations import LEFT, PREFIX, RESTORED, STATUS
from temper_plugin_kubernetes.node import NODES
from temper_plugin_kubernetes.operators.fleet import AGENTS, agent_pod
from temper_plugin_kubernetes.wishes import KILL_SWITCH, RESTORE, UNINSTALL

FILES_MAY_REMAIN = "files may remain on the node: run `temper restore` there"
STEP_S = 0.2


@frozen
class RestoreOutcome:
    """What came of one node: a word, and the rest of the sentence."""

    node: str
    state: str
    detail: str = ""

    @property
    def needs_a_look(self) -> bool:
        """Whether something may be left."""
        return self.state in ("unanswered", "no_agent", "restored_in_part", "refused")

    @property
    def told(self) -> str:
        """The line for people."""
        return f"{self.node}: {_TOLD[self.state]}{f': {self.detail}' if self.detail else ''}"


_TOLD = {
    "restored": "restored",
    "restored_in_part": "restored, but for what is not Temper's or could not be removed",
    "no_agent": "no agent runs here; its annotations were removed",
    "nothing": "nothing of Temper's is known here",
    "unanswered": "no answer",
    "released": "released; the agent works again",
    "not_requested": "nothing was asked of it",
    "refused": "the request cannot be written",
    "vanished": "the node is no more",
}

Tell = Callable[[RestoreOutcome], None]


class _Answers:
    """Follows the nodes. Keeps the annotations of each, and says when they change."""

    def __init__(self, asked: str) -> None:
        self.asked = asked
        self.annotations: dict[str, Mapping[str, str]] = {}
        self.changed_at = threading.Event()

    def of(self, name: str) -> set[str]:
        """Return the keys of a node's annotations, as far as they are known."""
        return set(self.annotations.get(name, ()))

    def replaced(self, items: Iterable[Json]) -> None:
        """Know all nodes."""
        found = list(items)
        self.annotations = {}
        for item in found:
            self._saw(item)

    def changed(self, kind: str, item: Json) -> None:
        """Know that a node changed."""
        if kind == "DELETED":
            self.annotations.pop(item["metadata"]["name"], None)
            self.changed_at.set()
        else:
            self._saw(item)

    def status_changed(self) -> None:
        """Nothing hangs on whether the watch is up."""

    def _saw(self, item: Json) -> None:
        metadata = item["metadata"]
        self.annotations[metadata["name"]] = metadata.get("annotations") or {}
        self.changed_at.set()


def restore_nodes(
    api: ApiServer, names: Collection[str], *, timeout_s: float, is_uninstall: bool, tell: Tell
) -> list[RestoreOutcome]:
    """Ask the nodes called *names*, or all without any, and wait for their answers.

    With *is_uninstall* nothing is left on any Node object, answered or not: the agents are about
    to go. Raises InputError for a name that no node has.
    """
    present = _chosen(api, names)
    agents = _with_agents(api)
    outcomes: list[RestoreOutcome] = []

    def note(outcome: RestoreOutcome) -> None:
        outcomes.append(outcome)
        tell(outcome)

    waiting: set[str] = set()
    value = UNINSTALL if is_uninstall else datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    asking = {RESTORE: value, RESTORED: None, LEFT: None}
    for name, annotations in sorted(present.items()):
        has_agent = name in agents if agents is not None else STATUS in annotations
        try:
            if has_agent and _patch(api, name, asking):
                waiting.add(name)
            elif not has_agent:
                note(_without_agent(api, name, annotations))
        except RefusalError as error:  # some policy of the cluster's; other nodes are not held up
            note(RestoreOutcome(name, "refused", str(error)))
    answers = _Answers(value)
    for name, state, detail in _awaited(api, waiting, answers, timeout_s):
        if is_uninstall:
            _patch(api, name, dict.fromkeys(_removable(answers.of(name) | asking.keys())))
        note(RestoreOutcome(name, state, _with_advice(state, detail, is_uninstall=is_uninstall)))
    return outcomes


def release_nodes(api: ApiServer, names: Collection[str], tell: Tell) -> list[RestoreOutcome]:
    """Take the request back, so that the agents work again."""
    outcomes = []
    for name, annotations in sorted(_chosen(api, names).items()):
        if RESTORE in annotations:
            _patch(api, name, {RESTORE: None})
            outcomes.append(RestoreOutcome(name, "released"))
        elif names:
            outcomes.append(RestoreOutcome(name, "not_requested"))
        else:
            continue
        tell(outcomes[-1])
    return outcomes


def _chosen(api: ApiServer, names: Collection[str]) -> dict[str, Mapping[str, str]]:
    """Return the annotations of the nodes that are meant."""
    found = {
        each["metadata"]["name"]: each["metadata"].get("annotations") or {}
        for each in api.list(NODES, accept=METADATA)
    }
    strangers = sorted(set(names) - set(found))
    if strangers:
        raise InputError(f"there is no node {', '.join(map(repr, strangers))} in this cluster")
    return {name: found[name] for name in names or found}


def _with_agents(api: ApiServer) -> set[str] | None:
    """Return the nodes on which an agent runs; None where pods may not be listed."""
    try:
        pods = [agent_pod(each) for each in api.list("/api/v1/pods", AGENTS)]
    except ForbiddenError:
        return None
    return {pod.node for pod in pods if not pod.is_failing and pod.phase == "Running"}


def _without_agent(api: ApiServer, name: str, annotations: Mapping[str, str]) -> RestoreOutcome:
    """Take away what an agent that is gone left on the Node object."""
    ours = _removable(annotations)
    if not ours:
        return RestoreOutcome(name, "nothing")
    _patch(api, name, dict.fromkeys(ours))
    return RestoreOutcome(name, "no_agent", FILES_MAY_REMAIN)


def _removable(annotations: Iterable[str]) -> list[str]:
    """Return our keys. The kill switch is the operator's own."""
    return [key for key in annotations if key.startswith(PREFIX) and key != KILL_SWITCH]


def _patch(api: ApiServer, name: str, change: Mapping[str, str | None]) -> bool:
    """Change annotations. Say whether the node is still there."""
    try:
        api.patch(f"{NODES}/{name}", {"metadata": {"annotations": change}})
    except NotFoundError:
        return False
    return True


def _awaited(
    api: ApiServer, waiting: set[str], answers: _Answers, timeout_s: float
) -> Iterable[tuple[str, str, str]]:
    """Yield (node, state, detail) as answers come, and after the time-out who gave none."""
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
            for name, state, detail in _answered(waiting, answers, status):
                waiting.discard(name)
                yield name, state, detail
    finally:
        watch.close()
    why = f"within {timeout_s:g} s" if status.has_listed.is_set() else status.reason
    for name in sorted(waiting):
        yield name, "unanswered", why


def _answered(
    waiting: Collection[str], answers: _Answers, status: WatchStatus
) -> list[tuple[str, str, str]]:
    found = []
    for name in sorted(waiting):
        annotations = answers.annotations.get(name)
        if annotations is None:
            if status.has_listed.is_set():
                found.append((name, "vanished", ""))
        elif RESTORED in annotations and annotations.get(RESTORE) == answers.asked:
            # The first list may be older than the request, and show the answer to one before.
            left = annotations.get(LEFT, "")
            found.append((name, "restored_in_part" if left else "restored", left))
    return found


def _with_advice(state: str, detail: str, *, is_uninstall: bool) -> str:
    if state != "unanswered":
        return detail
    if is_uninstall:
        return f"{detail}; {FILES_MAY_REMAIN}"
    return f"{detail}; the request stands, and is honoured once its agent hears it"
