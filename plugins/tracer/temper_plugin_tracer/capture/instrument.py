"""Captures in the agent: their endpoints, events and checks."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from temper_core import (
    Check,
    Endpoint,
    EventKind,
    InstrumentContext,
    OpenInstrument,
    Snapshot,
)
from temper_plugin_tracer.capture.backend_names import AUTO
from temper_plugin_tracer.capture.capture_events import KINDS
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.checks import BackendChecks
from temper_plugin_tracer.capture.endpoints import endpoints
from temper_plugin_tracer.capture.flight_endpoints import flight_endpoints
from temper_plugin_tracer.capture.flight_recorder import FlightRecorder


class TraceCaptures(OpenInstrument):
    """Captures traces on request. Nothing is loaded before, and numpy never is in this process."""

    def __init__(self, captures: Captures, backends: BackendChecks) -> None:
        self._captures = captures
        self._flight = FlightRecorder(captures)
        self._backends = backends

    @classmethod
    def of(cls, context: InstrumentContext, backend: str = AUTO) -> Self:
        """Open the captures of an agent, and remove what an earlier one left unfinished.

        *backend* records where a request does not name one.
        """
        captures = Captures(context, backend=backend)
        captures.clean()
        return cls(captures, BackendChecks())

    def tell(self, snapshot: Snapshot) -> None:
        """Pass the snapshot to a running capture, and take the result of one that has ended."""
        self._captures.tell(snapshot)
        self._flight.tell(snapshot)

    def let_go(self) -> None:
        """Have the check say that violations write no trace any more."""
        self._flight.let_go()

    def defects(self) -> Iterable[str]:
        """Return why the flight recorder's trace may not be written."""
        return self._flight.defects()

    def section(self, snapshot: Snapshot) -> Mapping[str, Any] | None:  # noqa: ARG002 - of itself
        """Return the state of the flight recorder while it is on."""
        return self._flight.section()

    def endpoints(self) -> Iterable[Endpoint]:
        """Serve ``/trace``, ``/traces`` and ``/flight-recorder``."""
        return (*endpoints(self._captures), *flight_endpoints(self._flight))

    def events(self) -> Iterable[EventKind]:
        """Declare the events of captures."""
        return KINDS

    def checks(self) -> Iterable[Check]:
        """Return which ways to record work here, and whether the flight recorder runs."""
        return (*self._backends.checks(), self._flight.check())

    def close(self) -> None:
        """End the running capture. Nothing of it is kept."""
        self._captures.close()
