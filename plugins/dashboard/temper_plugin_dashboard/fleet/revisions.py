"""What changed between the revisions of a pod's controller.

A Deployment keeps the template of each revision in a ReplicaSet, a StatefulSet or DaemonSet in a
ControllerRevision.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import frozen

from temper_kube.api_server import METADATA, ApiServer
from temper_plugin_dashboard.fleet.masking import masked
from temper_plugin_dashboard.fleet.newest import Newest

REPLICA_SET = "ReplicaSet"
KEPT_BY_REVISIONS = frozenset({"StatefulSet", "DaemonSet"})
NUMBER = "deployment.kubernetes.io/revision"
HASHES = frozenset({"pod-template-hash", "controller-revision-hash"})
"""Labels that differ between any two revisions."""
MOST_REVISIONS = 10
"""A Deployment keeps ten old ones by default (``revisionHistoryLimit``)."""
MOST_CHANGES = 200
LONGEST_VALUE = 500
"""Characters of a value before or after a change."""

Json = Mapping[str, Any]


@frozen
class Revision:
    """A template of pods, with what tells whose it is."""

    name: str
    uid: str
    number: int
    created: str
    template: Json


@frozen
class Owner:
    """The controller of an object."""

    kind: str
    name: str
    uid: str

    @classmethod
    def of(cls, item: Json) -> "Owner | None":
        """Return the controller of *item*. None if it has none."""
        owners = item["metadata"].get("ownerReferences") or ()
        found = next((each for each in owners if each.get("controller")), None)
        return found and cls(found["kind"], found["name"], found["uid"])


def revisions_of(api: ApiServer, pod: Json) -> Json:
    """Return the revisions of the controller of *pod*, the newest first, as JSON.

    Each has what changed since the one before, with secrets hidden. A change of a hidden value is a
    change. Raises MachineError.
    """
    owner = Owner.of(pod)
    if owner is None:
        return _none("The pod has no controller, so it has no revisions.")
    if owner.kind == REPLICA_SET:
        return _of_replica_set(api, pod, owner)
    if owner.kind in KEPT_BY_REVISIONS:
        return _of_controller_revisions(api, pod, owner)
    return _none(f"Pods of a {owner.kind} have no revisions.", owner)


def _of_replica_set(api: ApiServer, pod: Json, own: Owner) -> Json:
    path = _path(pod, "replicasets")
    owners = api.read(path, _with_owner, accept=METADATA)
    controller = next((owner for uid, owner in owners if uid == own.uid), None)
    if controller is None:
        return _none(f"The {own.kind} {own.name} has no Deployment.", own)
    kept = _newest(api, path, partial(_replica_set, controller.uid))
    return _document(controller, kept, lambda each: each.uid == own.uid)


def _of_controller_revisions(api: ApiServer, pod: Json, owner: Owner) -> Json:
    path = _path(pod, "controllerrevisions")
    kept = _newest(api, path, partial(_controller_revision, owner.uid))
    own = (pod["metadata"].get("labels") or {}).get("controller-revision-hash", "")
    # The label of a StatefulSet's pod is the name of the revision, that of a DaemonSet's its end.
    return _document(owner, kept, lambda each: bool(own) and f"-{each.name}".endswith(f"-{own}"))


def _newest(
    api: ApiServer, path: str, revision_of: Callable[[Json], Revision | None]
) -> list[Revision]:
    """Return the newest revisions of a collection, and the one before them to compare with."""
    newest = Newest[Revision](MOST_REVISIONS + 1, lambda each: each.number)

    def add(item: Json) -> None:
        if (revision := revision_of(item)) is not None:
            newest.add(revision.uid, revision)

    api.read(path, add)
    return newest.sorted()


def _path(pod: Json, resource: str) -> str:
    return f"/apis/apps/v1/namespaces/{pod['metadata']['namespace']}/{resource}"


def _with_owner(item: Json) -> tuple[str, Owner | None]:
    return item["metadata"]["uid"], Owner.of(item)


def _replica_set(controller: str, item: Json) -> Revision | None:
    number = (item["metadata"].get("annotations") or {}).get(NUMBER, "0")
    return _revision(controller, item, int(number), item["spec"])


def _controller_revision(controller: str, item: Json) -> Revision | None:
    return _revision(controller, item, int(item["revision"]), (item.get("data") or {}).get("spec"))


def _revision(controller: str, item: Json, number: int, spec: Json | None) -> Revision | None:
    """Return the revision that *item* keeps. None if it is of another controller."""
    owner = Owner.of(item)
    if owner is None or owner.uid != controller:
        return None
    about = item["metadata"]
    template = (spec or {}).get("template") or {}
    return Revision(about["name"], about["uid"], number, about["creationTimestamp"], template)


def _document(owner: Owner, kept: list[Revision], is_own: Callable[[Revision], bool]) -> Json:
    older = [*kept[1:], None]
    shown = list(zip(kept, older, strict=True))[:MOST_REVISIONS]
    return {
        "owner": {"kind": owner.kind, "name": owner.name},
        "note": "",
        "revisions": [
            {
                "number": each.number,
                "name": each.name,
                "created": each.created,
                "is_own": is_own(each),
                "changes": None if before is None else changes(before.template, each.template),
            }
            for each, before in shown
        ],
    }


def _none(note: str, owner: Owner | None = None) -> Json:
    about = owner and {"kind": owner.kind, "name": owner.name}
    return {"owner": about, "note": note, "revisions": []}


def changes(before: Json, after: Json) -> list[Json]:
    """Return the paths whose values differ, the first ``MOST_CHANGES``, with secrets hidden.

    A value that is not there is None.
    """
    was, now = dict(_flat(before)), dict(_flat(after))
    shown_was, shown_now = dict(_flat(masked(before))), dict(_flat(masked(after)))
    changed = (path for path in {**was, **now} if was.get(path) != now.get(path))
    shown = [path for path in changed if path in shown_was or path in shown_now]
    return [_change(path, shown_was, shown_now) for path in shown[:MOST_CHANGES]]


def _change(path: str, was: Mapping[str, object], now: Mapping[str, object]) -> Json:
    return {"path": path, "before": _short(was.get(path)), "after": _short(now.get(path))}


def _short(value: object) -> str | None:
    return None if value is None else str(value)[:LONGEST_VALUE]


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, object]]:  # noqa: ANN401 - parsed
    """Yield each scalar with its path. Items of a list have their name or their place."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in HASHES and key != "$patch":
                yield from _flat(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for place, each in enumerate(value):
            name = each.get("name", place) if isinstance(each, dict) else place
            yield from _flat(each, f"{path}[{name}]")
    elif value is not None:
        yield path, " ".join(map(str, value)) if isinstance(value, list) else value
