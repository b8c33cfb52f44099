"""The API server's facts about one pod: its events, manifest, revisions and logs.

Each part needs a right of its own, and is read only if the operator asked for it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from attrs import define

from temper_core import InputError, MachineError
from temper_kube.access import Access
from temper_kube.api_server import ApiServer
from temper_plugin_dashboard.fleet.masking import masked
from temper_plugin_dashboard.fleet.newest import Newest
from temper_plugin_dashboard.fleet.revisions import revisions_of

MOST_EVENTS = 200
LONGEST_MESSAGE, LONGEST_WORD = 1024, 256
"""Characters of an event's message and of its other texts. The writer of an event chooses both."""
MOST_LINES = 300
LARGEST_LOG = 1024 * 1024
"""Bytes. The kubelet ends the answer there, so that longer lines lose the newest."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)

Json = Mapping[str, Any]


class Part(StrEnum):
    """The parts of a pod that may be read."""

    EVENTS = "events"
    MANIFEST = "manifest"
    REVISIONS = "revisions"
    LOGS = "logs"


@define
class PodQuestion:
    """A pod, and for logs a container of it, by the names that a client gave."""

    namespace: str
    pod: str
    container: str = ""
    is_previous: bool = False

    def __attrs_post_init__(self) -> None:
        """Raise InputError for names that no object has. They become parts of a path."""
        names = {"namespace": self.namespace, "pod": self.pod}
        for key, name in {**names, "container": self.container or "any"}.items():
            if not _NAME.fullmatch(name):
                raise InputError(f"{key} must be the name of one, not {name[:60]!r}")

    @property
    def path(self) -> str:
        """The path of the pod."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.pod}"


class PodDetails:
    """Reads *parts* of pods from the API server, on any thread."""

    def __init__(self, access: Access, parts: Iterable[str] = ()) -> None:
        self._access = access
        self.parts = tuple(part for part in Part if part in set(parts))
        self._readers: Mapping[str, Callable[[ApiServer, PodQuestion], Json]] = {
            Part.EVENTS: _events,
            Part.MANIFEST: _manifest,
            Part.REVISIONS: _revisions,
            Part.LOGS: _log,
        }

    def read(self, part: str, question: PodQuestion) -> Json:
        """Return a part of a pod as JSON.

        Raises InputError for one that is not shown, ForbiddenError for a missing right,
        NotFoundError if there is no such pod, and MachineError.
        """
        if part not in self.parts:
            raise InputError(
                f"{part[:20]!r} is not shown: --pod-details, dashboard.podDetails of the chart"
            )
        with ApiServer(self._access) as api:
            try:
                return self._readers[part](api, question)
            except RecursionError as error:  # the data of a ControllerRevision has any shape
                raise MachineError(f"{question.path}: the answer is nested too deeply") from error


def _events(api: ApiServer, question: PodQuestion) -> Json:
    fields = f"involvedObject.kind=Pod,involvedObject.name={question.pod}"
    path = f"/api/v1/namespaces/{question.namespace}/events"
    newest = Newest[Json](MOST_EVENTS, lambda each: str(each["last"]))
    api.read(path, lambda item: newest.add(item["metadata"]["uid"], _event(item)), fields=fields)
    return {"events": newest.sorted(), "total": newest.total}


def _event(item: Json) -> Json:
    series = item.get("series") or {}
    made = item["metadata"]["creationTimestamp"]
    first = item.get("firstTimestamp") or item.get("eventTime") or made
    source = item.get("source") or {}
    texts = {
        "type": item.get("type", ""),
        "reason": item.get("reason", ""),
        "from": item.get("reportingComponent") or source.get("component", ""),
        "first": first,
        "last": series.get("lastObservedTime") or item.get("lastTimestamp") or first,
    }
    return {
        **{name: str(value)[:LONGEST_WORD] for name, value in texts.items()},
        "message": str(item.get("message", ""))[:LONGEST_MESSAGE],
        "count": series.get("count") or item.get("count") or 1,
    }


def _manifest(api: ApiServer, question: PodQuestion) -> Json:
    return {"manifest": masked(api.get(question.path))}


def _revisions(api: ApiServer, question: PodQuestion) -> Json:
    return revisions_of(api, api.get(question.path))


def _log(api: ApiServer, question: PodQuestion) -> Json:
    asked = {"tailLines": MOST_LINES, "limitBytes": LARGEST_LOG, "timestamps": "true"}
    if question.container:
        asked["container"] = question.container
    if question.is_previous:
        asked["previous"] = "true"
    text = api.text(f"{question.path}/log?{urlencode(asked)}", 2 * LARGEST_LOG)
    is_cut = len(text.encode()) >= LARGEST_LOG
    return {"lines": text.splitlines(), "most": MOST_LINES, "is_cut": is_cut}
