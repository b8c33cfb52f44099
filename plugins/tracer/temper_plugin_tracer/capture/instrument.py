"""Captures in the agent: their endpoints, events and checks."""

from collections.abc import Iterable
from typing import Self

from temper_core import (
    Check,
    Endpoint,
    EventKind,
    InstrumentContext,
    OpenInstrument,
    Snapshot,
)
from temper_plugin_tracer.capture.captures import KINDS, Captures
from temper_plugin_tracer.capture.checks import BackendChecks
from temper_plugin_tracer.capture.endpoints import endpoints


class TraceCaptures(OpenInstrument):
    """Captures traces on request. Nothing is loaded before, and numpy never is in this process."""

    def __init__(self, captures: Captures, backends: BackendChecks) -> None:
        self._captures = captures
        self._backends = backends

    @classmethod
    def of(cls, context: InstrumentContext) -> Self:
        """Open the captures of an agent, and remove what an earlier one left unfinished."""
        captures = Captures(context)
        captures.clean()
        return cls(captures, BackendChecks())

    def tell(self, snapshot: Snapshot) -> None:
        """Let a running capture tell of the node, and take the result of one that has ended."""
        self._captures.tell(snapshot)

    def endpoints(self) -> Iterable[Endpoint]:
        """Serve ``/trace`` and ``/traces``."""
        return endpoints(self._captures)

    def events(self) -> Iterable[EventKind]:
        """Declare the events of captures."""
        return KINDS

    def checks(self) -> Iterable[Check]:
        """Return which ways to record work here."""
        return self._backends.checks()

    def close(self) -> None:
        """End the running capture. Nothing of it is kept."""
        self._captures.close()
