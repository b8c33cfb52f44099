"""The objects that a report, or an undo, is about."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby

from attrs import frozen

from temper_core import InputError
from temper_core.console import Row
from temper_core.observed import rows, table, text
from temper_kube.api_server import ApiServer
from temper_kube.bounded_answers import bounded_answers
from temper_plugin_rightsizer.applying.edits import REFUSALS, Edit, applying, undoing
from temper_plugin_rightsizer.applying.running_pods import RunningPods
from temper_plugin_rightsizer.changes import ContainerChange, change_of
from temper_plugin_rightsizer.kinds import POD, TEMPLATES

OVERCOMMIT = "temper.codes/overcommit"
"""The label of a namespace whose requests the overcommit webhook lowers (docs/density.md)."""
LOW = "low"
LONGEST_REASON = 400
"""How much of a reason is kept. It may quote an annotation, which has up to 256 KiB."""
NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""Names of objects. An agent or a Prometheus may send any text, which must not lead elsewhere."""


@frozen
class Refusal:
    """An object that is left as it is, and the reason."""

    title: str
    why: str


@frozen
class Choice:
    """The choice from a report: advice of low confidence too, and running pods in place."""

    takes_low: bool = False
    in_place: bool = False


@frozen
class _Workload:
    namespace: str
    kind: str
    name: str
    changes: tuple[ContainerChange, ...]

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}"


def edits_of(api: ApiServer, document: Row, choice: Choice) -> Iterator[Edit | Refusal]:
    """Yield an edit for each object that the report *document* changes, or why there is none."""
    lowered: dict[str, bool] = {}
    for workload in _workloads(document, choice):
        if isinstance(workload, Refusal):
            yield workload
            continue
        try:
            if workload.namespace not in lowered:
                lowered[workload.namespace] = _is_lowered(api, workload.namespace)
            if lowered[workload.namespace]:
                raise InputError(f"the namespace has {OVERCOMMIT}: the webhook sets its requests")
            yield from _edits(api, workload, choice)
        except REFUSALS as error:
            yield Refusal(workload.title, str(error))


def undos(api: ApiServer, namespaces: tuple[str, ...]) -> Iterator[Edit | Refusal]:
    """Yield the edits that take back all that was applied in *namespaces*, or in all of them."""
    for name, kind in (*TEMPLATES.items(), ("Pod", POD)):
        for namespace in namespaces or ("",):
            yield from _read(api, kind.path(namespace), "", name, partial(undoing, name))


def _read(
    api: ApiServer, path: str, labels: str, kind: str, edit_of: Callable[[Row], Edit | None]
) -> Iterator[Edit | Refusal]:
    """Yield the edits of a collection. No more than these is kept of its objects."""

    def record_of(item: Row) -> Edit | Refusal | None:
        try:
            return edit_of(item)
        except InputError as error:
            metadata = table(item, "metadata")
            title = f"{text(metadata, 'namespace')}/{kind}/{text(metadata, 'name')}"
            return Refusal(title, str(error)[:LONGEST_REASON])

    with bounded_answers():
        found = [each for each in api.read(path, record_of, labels) if each is not None]
    yield from found


def _workloads(document: Row, choice: Choice) -> Iterator[_Workload | Refusal]:
    """Yield the workloads whose containers should change."""

    def place(row: Row) -> tuple[str, str]:
        return text(row, "namespace"), text(row, "owner")

    for (namespace, owner), containers in groupby(
        sorted(rows(document, "containers"), key=place), key=place
    ):
        kind, _, name = owner.partition("/")
        title = f"{namespace}/{owner}"
        changes = []
        for row in containers:
            change = None if row.get("keeps") is True else change_of(row)
            if change is None:
                continue
            why = _why_not(row, kind, choice)
            if why:
                yield Refusal(f"{title} container {change.container}", why)
            else:
                changes.append(change)
        if changes:
            yield _Workload(namespace, kind, name, tuple(changes))


def _why_not(row: Row, kind: str, choice: Choice) -> str:
    """Return why the advice is not applied. Empty if it is."""
    if not all(map(NAME.fullmatch, (text(row, "namespace"), text(row, "owner").partition("/")[2]))):
        return "this is no name of an object"
    if manager := text(row, "managed_by"):
        return f"{manager} sets the requests"
    if kind not in TEMPLATES and kind != "Pod":
        return f"the requests of a {kind or 'workload without a kind'} cannot change"
    if kind == "Pod" and not choice.in_place:
        return "a pod without a controller changes in place only: --in-place"
    if text(row, "confidence") == LOW and not choice.takes_low:
        return "the confidence is low, as little time was measured; --low-confidence takes it"
    return ""


def _edits(api: ApiServer, workload: _Workload, choice: Choice) -> Iterator[Edit | Refusal]:
    if workload.kind == "Pod":
        item = api.get(POD.path(workload.namespace, workload.name))
        yield applying("Pod", item, workload.changes)
        return
    item = api.get(TEMPLATES[workload.kind].path(workload.namespace, workload.name))
    if not choice.in_place:
        yield applying(workload.kind, item, workload.changes)
        return
    pods = RunningPods.of(api, workload.kind, item)

    def edit_of(pod: Row) -> Edit | None:
        if pods.belongs_elsewhere(pod):
            return None
        if not pods.has(pod):
            raise InputError(
                f"it has the labels of {workload.kind}/{workload.name}, which does not control it"
            )
        return applying("Pod", pod, workload.changes)

    yield from _read(api, POD.path(workload.namespace), pods.labels, "Pod", edit_of)


def _is_lowered(api: ApiServer, namespace: str) -> bool:
    item = api.get(f"/api/v1/namespaces/{namespace}")
    return text(table(table(item, "metadata"), "labels"), OVERCOMMIT) == "enabled"
