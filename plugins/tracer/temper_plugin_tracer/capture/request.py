"""The body of ``POST /trace``: what is captured, within which bounds."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen
from attrs.validators import deep_iterable, ge, in_, instance_of, le, max_len, optional

from temper_core import InputError, fit_body
from temper_plugin_tracer.capture import bounds
from temper_plugin_tracer.capture.backend_names import CHOICES
from temper_plugin_tracer.capture.bounds import Bounds
from temper_plugin_tracer.capture.helper_plan import HelperPlan

SOURCE = "trace request"
ENTRY_POINT = "temper_plugin_tracer.capture.capture_helper:capture"
MOST_CPU = 8_191
LONGEST_NAME = 1_024
_NAME: Mapping[str, Any] = {"type": "string", "maxLength": LONGEST_NAME}
SCHEMA: Mapping[str, Any] = {
    "title": "TraceRequest",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "seconds": {
            "type": "number",
            "minimum": bounds.LEAST_S,
            "maximum": bounds.LONGEST_S,
            "default": bounds.USUAL_S,
        },
        "bytes": {
            "type": "integer",
            "minimum": bounds.LEAST_BYTES,
            "maximum": bounds.MOST_BYTES,
            "default": bounds.USUAL_BYTES,
        },
        "events": {
            "type": "integer",
            "minimum": 1,
            "maximum": bounds.MOST_EVENTS,
            "default": bounds.MOST_EVENTS,
        },
        "pod": {**_NAME, "description": "namespace/name"},
        "container": {**_NAME, "description": "a container of the pod"},
        "cgroup": {**_NAME, "description": "a path of the unified hierarchy"},
        "process": {"type": "integer", "minimum": 1, "description": "a process id of the host"},
        "cpus": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": MOST_CPU},
            "description": "only these CPUs",
        },
        "backend": {"enum": list(CHOICES), "description": "by default as the settings say"},
    },
}


@frozen
class TraceRequest:
    """A request for a capture. Without pod, cgroup and process it is of the whole node."""

    seconds: float = field(
        default=bounds.USUAL_S, validator=[ge(bounds.LEAST_S), le(bounds.LONGEST_S)]
    )
    bytes: int = field(
        default=bounds.USUAL_BYTES, validator=[ge(bounds.LEAST_BYTES), le(bounds.MOST_BYTES)]
    )
    events: int = field(default=bounds.MOST_EVENTS, validator=[ge(1), le(bounds.MOST_EVENTS)])
    pod: str = field(default="", validator=max_len(LONGEST_NAME))
    container: str = field(default="", validator=max_len(LONGEST_NAME))
    cgroup: str = field(default="", validator=max_len(LONGEST_NAME))
    process: int | None = field(default=None, validator=optional(ge(1)))
    cpus: tuple[int, ...] = field(
        default=(), validator=deep_iterable([ge(0), le(MOST_CPU)], instance_of(tuple))
    )
    backend: str = field(default="", validator=in_(("", *CHOICES)))

    @property
    def bounds(self) -> Bounds:
        """The bounds."""
        return Bounds(self.seconds, self.bytes, self.events)

    @property
    def plan(self) -> HelperPlan:
        """The plan of its helper process."""
        return HelperPlan(ENTRY_POINT)


def parse_trace_request(body: Any) -> TraceRequest:  # noqa: ANN401 - JSON
    """Read a request's *body*, which may be empty. Raise InputError if it is invalid."""
    request = fit_body(
        body, TraceRequest, source=SOURCE, example='{"seconds": 5, "pod": "shop/mysql-0"}'
    )
    refuse_contradictions(request)
    return request


def refuse_contradictions(request: TraceRequest) -> None:
    """Raise InputError if *request* selects several things, or a container of no pod."""
    chosen = [bool(request.pod), bool(request.cgroup), request.process is not None]
    if sum(chosen) > 1:
        raise InputError("a trace is of one of pod, cgroup and process, or of the whole node")
    if request.container and not request.pod:
        raise InputError("container names a container of a pod: give pod as well")
