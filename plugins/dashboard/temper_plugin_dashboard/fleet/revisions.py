"""The changes between the revisions of a pod's controller.

A Deployment keeps the template of each revision in a ReplicaSet, a StatefulSet or DaemonSet in a
ControllerRevision.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from itertools import islice
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
LONGEST_NUMBER = 18
"""Digits. The annotation of a ReplicaSet may have any text."""
MOST_VALUES = 5_000
"""Values of a template. A larger one is not compared: all revisions are in memory at once."""
LONGEST_PATH = 200
"""Characters. Of values with the same beginning of their path the last one counts."""
MOST_CHANGES = 200
LONGEST_VALUE = 500
"""Characters of a value before or after a change."""

Json = Mapping[str, Any]


@frozen
class Value:
    """A value of a template. ``shown`` is None for one that is left out of a manifest."""

    digest: bytes
    shown: str | None


Template = Mapping[str, Value]
"""The values of a template by their path."""


@frozen
class Revision:
    """A template of pods, with what tells whose it is. ``template`` is None for a large one."""

    name: str
    uid: str
    number: int
    created: str
    template: Template | None


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
    text = (item["metadata"].get("annotations") or {}).get(NUMBER, "")
    number = int(text) if text.isdecimal() and len(text) <= LONGEST_NUMBER else 0
    return _revision(controller, item, number, item["spec"])


def _controller_revision(controller: str, item: Json) -> Revision | None:
    return _revision(controller, item, int(item["revision"]), (item.get("data") or {}).get("spec"))


def _revision(controller: str, item: Json, number: int, spec: Json | None) -> Revision | None:
    """Return the revision that *item* keeps. None if it is of another controller."""
    owner = Owner.of(item)
    if owner is None or owner.uid != controller:
        return None
    about = item["metadata"]
    template = values_of((spec or {}).get("template") or {})
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
                **_comparison(before, each),
            }
            for each, before in shown
        ],
    }


def _none(note: str, owner: Owner | None = None) -> Json:
    about = owner and {"kind": owner.kind, "name": owner.name}
    return {"owner": about, "note": note, "revisions": []}


def _comparison(before: Revision | None, now: Revision) -> Json:
    if before is None:
        return {"changes": None, "is_large": False}
    if before.template is None or now.template is None:
        return {"changes": None, "is_large": True}
    return {"changes": changes(before.template, now.template), "is_large": False}


def values_of(template: Json) -> Template | None:
    """Return the values of *template*, with secrets hidden. None if it has too many."""
    flat = list(islice(_flat(template), MOST_VALUES + 1))
    if len(flat) > MOST_VALUES:
        return None
    shown = dict(_flat(masked(template)))
    return {path: _value(each, shown.get(path)) for path, each in flat}


def _value(value: object, shown: object) -> Value:
    digest = blake2b(str(value).encode(errors="surrogatepass"), digest_size=16).digest()
    return Value(digest, None if shown is None else str(shown)[:LONGEST_VALUE])


def changes(before: Template, after: Template) -> list[Json]:
    """Return the paths whose values differ, the first ``MOST_CHANGES``, with secrets hidden.

    A value that is not there is None.
    """
    changed = (
        (path, before.get(path), after.get(path))
        for path in {**before, **after}
        if before.get(path) != after.get(path)
    )
    shown = (
        {"path": path, "before": was and was.shown, "after": now and now.shown}
        for path, was, now in changed
    )
    seen = (each for each in shown if each["before"] is not None or each["after"] is not None)
    return list(islice(seen, MOST_CHANGES))


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, object]]:  # noqa: ANN401 - parsed
    """Yield each scalar with its path. Items of a list have their name or their place."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in HASHES and key != "$patch":
                yield from _flat(each, (f"{path}.{key}" if path else key)[:LONGEST_PATH])
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for place, each in enumerate(value):
            name = each.get("name", place) if isinstance(each, dict) else place
            yield from _flat(each, f"{path}[{name}]"[:LONGEST_PATH])
    elif value is not None:
        yield path, " ".join(map(str, value)) if isinstance(value, list) else value
