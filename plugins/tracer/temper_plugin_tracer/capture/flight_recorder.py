"""The flight recorder of this agent: its start, its watch on the linter, and its state."""

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from attrs import define

from temper_core import Check, CheckState, MachineError, Snapshot
from temper_plugin_tracer.capture.bounds import Ending
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.flight_request import FlightRequest, refuse_unknown
from temper_plugin_tracer.capture.flight_status import read_status
from temper_plugin_tracer.capture.running import Running

CHECK = "trace flight recorder"
OFF: Mapping[str, Any] = {"is_on": False}
WITHOUT_LOOKS = "no violation ends the flight recorder any more; restart the agent"
REMEDY = "look what keeps the disk of the state directory busy or full"


@define(eq=False)
class FlightRecorder:
    """At most one at a time, as a capture of *captures*. Any thread may call every method."""

    captures: Captures
    _invariants: tuple[str, ...] = ()
    _standing: frozenset[str] = frozenset()
    _let_go_reason: str = ""
    _status: tuple[str, Mapping[str, Any]] = ("", {})
    _is_reading: bool = False

    def start(self, request: FlightRequest, by: str) -> dict[str, Any]:
        """Begin in the name of *by*, and return the state.

        Raises HeldError while a capture or a flight recorder runs, InputError for an unknown pod
        or invariant, MachineError if it cannot begin.
        """
        refuse_unknown(request, self._invariants)
        self.captures.begin(request, by)
        return self.document()

    def dump(self, by: str) -> dict[str, Any] | None:
        """Write the trace, which ends the recording. Return its entry, None if nothing records."""
        running = self._running()
        return None if running is None else self.captures.end(running.id, by)

    def stop(self, by: str) -> bool:
        """End the recording without a trace. Return whether there was one."""
        running = self._running()
        return running is not None and self.captures.stop(running.id, by)

    def tell(self, snapshot: Snapshot) -> None:
        """Write the trace if a violation that was asked for has begun since the last look."""
        violations = {violation.id: violation for violation in snapshot.violations}
        begun = violations.keys() - self._standing
        self._invariants, self._standing = snapshot.invariants, frozenset(violations)
        running = self._running() if begun else None
        if running is None or not isinstance(running.request, FlightRequest):
            return
        for each in sorted(begun):
            violation = violations[each]
            if violation.invariant in running.request.violations:
                cause = f"{violation.invariant}: {violation.subject}"
                self.captures.end_soon(running.id, cause, Ending.VIOLATION)
                return

    def let_go(self) -> None:
        """Have the check and the defects say that no look is told any more."""
        self._let_go_reason = WITHOUT_LOOKS

    def defects(self) -> tuple[str, ...]:
        """Return why traces are not written: the disk, and looks that are not told any more."""
        return tuple(filter(None, (self.captures.files.defect, self._let_go_reason)))

    def document(self) -> dict[str, Any]:
        """Return the state: ``is_on``, and the entry of ``/traces`` with what it costs."""
        running = self._running()
        if running is None:
            return dict(OFF)
        with suppress(MachineError):
            self.captures.files.disk.ask(partial(self._read, running.id))
        return self._document(running)

    def section(self) -> Mapping[str, Any] | None:
        """Return the state as a section of a snapshot, None while it is off.

        It has the costs as they were at the last call, for a look must not wait for the disk.
        """
        running = self._running()
        if running is None:
            return None
        if not self._is_reading:
            self._is_reading = True
            try:
                self.captures.files.disk.begin(partial(self._read, running.id))
            except MachineError:
                self._is_reading = False
        return {"flight_recorder": self._document(running)}

    def check(self) -> Check:
        """Return whether it runs and can write its trace, for ``temper doctor``."""
        defect = self.captures.files.defect
        if defect or self._let_go_reason:
            remedy = REMEDY if defect else ""
            return Check(CHECK, CheckState.WARNING, defect or self._let_go_reason, remedy)
        document = self.document()
        if not document["is_on"]:
            return Check(CHECK, CheckState.OK, "is off")
        return Check(CHECK, CheckState.OK, in_words(document))

    def _document(self, running: Running) -> dict[str, Any]:
        capture, status = self._status
        costs = status if capture == running.id else {}
        return {"is_on": True, **running.document(time.monotonic()), **costs}

    def _read(self, capture: str) -> None:
        """Read what the helper reports, on the thread of the disk."""
        try:
            self._status = capture, read_status(self.captures.store.directory, capture)
        finally:
            self._is_reading = False

    def _running(self) -> Running | None:
        running = self.captures.running
        return running if running and isinstance(running.request, FlightRequest) else None


def in_words(document: Mapping[str, Any]) -> str:
    """Return the state of a recorder that is on, in one line."""
    asked = document["asked"]
    names = ", ".join(asked["violations"])
    cost = f", takes {document['cpu_ratio']:.2%} of a core" if "cpu_ratio" in document else ""
    return (
        f"records {document['selection']} for {document['by']}, {document['remaining_s']:.0f} s "
        f"more, keeps the last {asked['kept_seconds']:g} s{cost}, "
        f"writes them {f'at a violation of {names}, or ' if names else ''}when asked to"
    )
