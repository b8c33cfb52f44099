"""The body of ``POST /flight-recorder``: what is recorded, for how long, and what writes it."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from attrs import field, frozen
from attrs.validators import deep_iterable, ge, in_, instance_of, le, max_len

from temper_core import InputError, did_you_mean, fit_body
from temper_plugin_tracer.capture.bounds import Bounds
from temper_plugin_tracer.capture.helper_plan import USUAL_CPU_S, HelperPlan
from temper_plugin_tracer.capture.request import SCHEMA as TRACE_SCHEMA
from temper_plugin_tracer.capture.request import TraceRequest, refuse_contradictions

SOURCE = "request for the flight recorder"
KIND = "flight recorder"
ENTRY_POINT = "temper_plugin_tracer.capture.flight_helper:record"
USUAL_DURATION_S, LEAST_DURATION_S, LONGEST_DURATION_S = 3_600.0, 1.0, 86_400.0
USUAL_KEPT_S, LEAST_KEPT_S, LONGEST_KEPT_S = 10.0, 0.1, 30.0
USUAL_CPU_RATIO, LEAST_CPU_RATIO, MOST_CPU_RATIO = 0.05, 0.000_1, 1.0
MOST_INVARIANTS = 64
BACKENDS = ("auto", "bpf")
"""Only the BPF object keeps the newest events."""
_TAKEN = ("bytes", "events", "pod", "container", "cgroup", "process", "cpus")
SCHEMA: Mapping[str, Any] = {
    "title": "FlightRecorderRequest",
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "seconds": {
            "type": "number",
            "minimum": LEAST_DURATION_S,
            "maximum": LONGEST_DURATION_S,
            "default": USUAL_DURATION_S,
            "description": "how long it records",
        },
        "kept_seconds": {
            "type": "number",
            "minimum": LEAST_KEPT_S,
            "maximum": LONGEST_KEPT_S,
            "default": USUAL_KEPT_S,
            "description": "how much a trace has of the time before it is written",
        },
        "violations": {
            "type": "array",
            "maxItems": MOST_INVARIANTS,
            "items": {"type": "string", "maxLength": 200},
            "description": "invariants of the linter: a violation of one writes the trace",
        },
        "cpu_ratio": {
            "type": "number",
            "minimum": LEAST_CPU_RATIO,
            "maximum": MOST_CPU_RATIO,
            "default": USUAL_CPU_RATIO,
            "description": "the share of one core beyond which it ends itself",
        },
        **{name: TRACE_SCHEMA["properties"][name] for name in _TAKEN},
        "backend": {"enum": list(BACKENDS), "default": "auto"},
    },
}


@frozen
class FlightRequest(TraceRequest):
    """A request for the flight recorder. ``seconds`` is how long it records.

    Attributes:
        kept_seconds: The time before the writing that a trace has.
        violations: Names of invariants. A violation of one that begins writes the trace.
        cpu_ratio: Share of one core, as a mean of some seconds, beyond which it ends itself.

    """

    seconds: float = field(
        default=USUAL_DURATION_S, validator=[ge(LEAST_DURATION_S), le(LONGEST_DURATION_S)]
    )
    kept_seconds: float = field(
        default=USUAL_KEPT_S, validator=[ge(LEAST_KEPT_S), le(LONGEST_KEPT_S)]
    )
    violations: tuple[str, ...] = field(
        default=(), validator=[max_len(MOST_INVARIANTS), deep_iterable(instance_of(str))]
    )
    cpu_ratio: float = field(
        default=USUAL_CPU_RATIO, validator=[ge(LEAST_CPU_RATIO), le(MOST_CPU_RATIO)]
    )
    backend: str = field(default="auto", validator=in_(BACKENDS))

    @property
    def bounds(self) -> Bounds:
        """The bounds of the trace."""
        return Bounds(self.kept_seconds, self.bytes, self.events)

    @property
    def plan(self) -> HelperPlan:
        """The plan of its helper process."""
        return HelperPlan(
            ENTRY_POINT,
            cpu_s=USUAL_CPU_S + ceil(self.seconds * self.cpu_ratio),
            argument={"duration_s": self.seconds, "cpu_ratio": self.cpu_ratio},
            shown={"kind": KIND},
            follows=False,
        )


def parse_flight_request(body: Any) -> FlightRequest:  # noqa: ANN401 - JSON
    """Read a request's *body*, which may be empty. Raise InputError if it is invalid."""
    example = '{"seconds": 3600, "kept_seconds": 10, "violations": ["rt_hog"]}'
    request = fit_body(body, FlightRequest, source=SOURCE, example=example)
    refuse_contradictions(request)
    return request


def refuse_unknown(request: FlightRequest, invariants: tuple[str, ...]) -> None:
    """Raise InputError if *request* names an invariant that the linter does not have.

    Without known *invariants*, before the first look at the node, all names are taken.
    """
    unknown = sorted(set(request.violations) - set(invariants))
    if invariants and unknown:
        known = ", ".join(invariants)
        meant = did_you_mean(unknown[0], invariants)
        raise InputError(f"there is no invariant {unknown[0]!r}; the linter has {known}{meant}")
