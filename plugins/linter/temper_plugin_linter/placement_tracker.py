"""Prepares each snapshot once for all invariants, and keeps the history they need."""

from attrs import define, field

from temper_core import Section, Snapshot, WakeWindow, read_wake_window
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.placement import Placement, PlacementHistory, PlanFacts


@define(eq=False)
class PlacementTracker:
    """One plugin's view of the node. It may be used on the plugin's own thread only."""

    limits: Limits
    _seen: Placement | None = field(default=None, init=False)
    _basis: tuple[object, ...] = field(default=(), init=False)
    _changed_s: float = field(default=float("-inf"), init=False)
    _facts: PlanFacts = field(factory=lambda: PlanFacts(None), init=False)
    _section: Section | None = field(default=None, init=False)
    _wakes: WakeWindow | None = field(default=None, init=False)
    _wakes_before: WakeWindow | None = field(default=None, init=False)

    def look(self, snapshot: Snapshot) -> Placement:
        """Return the placement of a snapshot. Repeated calls return the same object."""
        if self._seen is None or self._seen.snapshot is not snapshot:
            self._seen = self._next(snapshot)
        return self._seen

    def _next(self, snapshot: Snapshot) -> Placement:
        if self._facts.plan is not snapshot.plan:
            self._facts = PlanFacts(snapshot.plan)
        self._note_change(snapshot)
        self._note_wakes(snapshot.sections.get("tracer"))
        past = PlacementHistory(self._is_settled(snapshot), self._owned(), self._wakes_before)
        return Placement(snapshot, self.limits, self._facts, past, self._wakes)

    def _note_change(self, snapshot: Snapshot) -> None:
        status = snapshot.status
        basis = (status.mode, status.generation, status.engine)
        if self._basis and basis != self._basis:
            self._changed_s = snapshot.monotonic_s
        self._basis = basis

    def _note_wakes(self, section: Section | None) -> None:
        """Keep the last two watched windows. Consecutive snapshots may have the same one."""
        if section is not None and self._wakes is not None and section == self._section:
            return
        wakes = read_wake_window(section)
        self._section = section
        if wakes is None:
            self._wakes = self._wakes_before = None
        elif self._wakes is None or wakes.at != self._wakes.at:
            self._wakes, self._wakes_before = wakes, self._wakes

    def _is_settled(self, snapshot: Snapshot) -> bool:
        settles_s = self.limits.settle_windows * snapshot.window_s
        return snapshot.monotonic_s - self._changed_s >= settles_s

    def _owned(self) -> dict[str, frozenset[int]]:
        if self._seen is None:
            return {}
        return {sample.name: frozenset(sample.cpus) for sample in self._seen.snapshot.layers}
