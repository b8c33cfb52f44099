"""Takes one window at a time, within the budget, and measures its cost."""

import threading
import time

from attrs import evolve, frozen

from temper_core import MachineError, Observing, Places, Snapshot, WakeWindow
from temper_plugin_tracer.kernel import RowLimits, WakeKernel, WindowCounts
from temper_plugin_tracer.pacing import WakePace
from temper_plugin_tracer.roster import PartyRoster, ThreadCgroups
from temper_plugin_tracer.switch_rate import read_switches
from temper_plugin_tracer.telling import MOST_BLOCKINGS, MOST_EDGES, tell_window

RATE_OVER_S = 0.25
"""The rate of switches is measured for so long right before a window."""
AGAIN_S = 30.0
"""Delay after a window was not possible. The node may have become quieter."""


@frozen
class WindowResult:
    """A window, or the reason why there was none. The next one is due in ``rest_s``.

    The window cost ``kernel_s`` in the threads that were running, and ``own_s`` in this one.
    """

    rest_s: float
    window: WakeWindow | None = None
    reason: str = ""
    kernel_s: float = 0.0
    own_s: float = 0.0
    knows_interrupts: bool = False


class Windows:
    """Watches one window at a time. Setting *closing* ends it early."""

    def __init__(self, closing: threading.Event, proc_root: str = "/proc") -> None:
        self.pace = WakePace()
        self._closing = closing
        self._proc_root = proc_root
        self._homes = ThreadCgroups(proc_root)
        self._places = Places(None)

    def watch(self, kernel: WakeKernel, snapshot: Snapshot | None) -> WindowResult:
        """Watch for as long as the budget allows. *snapshot* names threads. Raises ``BpfError``."""
        began_s = time.thread_time()
        try:
            rate = self._switches_per_s()
        except MachineError as error:
            return WindowResult(AGAIN_S, reason=str(error))
        observing = snapshot.observing if snapshot is not None else Observing()
        share = self.pace.share(observing.budget_cpu_ratio - observing_ratio(snapshot))
        plan = self.pace.plan(rate, share)
        if not plan.length_s:
            return WindowResult(AGAIN_S, reason=plan.reason)
        counts = self._count(kernel, plan.length_s)
        if self._closing.is_set():
            return WindowResult(AGAIN_S)
        window = self._tell(counts, snapshot)
        own_s = time.thread_time() - began_s
        self.pace.learn(counts.switches, counts.kernel_s, own_s)
        every_s = self.pace.every_s(counts.kernel_s + own_s, share)
        return WindowResult(
            every_s,
            evolve(window, every_s=every_s, switches_per_s=rate),
            kernel_s=counts.kernel_s,
            own_s=own_s,
            knows_interrupts=counts.knows_interrupts,
        )

    def _switches_per_s(self) -> float:
        before, since = read_switches(self._proc_root), time.monotonic()
        self._closing.wait(RATE_OVER_S)
        switches = read_switches(self._proc_root) - before
        return switches / max(time.monotonic() - since, RATE_OVER_S / 2)

    def _count(self, kernel: WakeKernel, length_s: float) -> WindowCounts:
        kernel.begin(length_s)
        self._closing.wait(length_s)
        return kernel.end(most=RowLimits(MOST_EDGES, MOST_BLOCKINGS))

    def _tell(self, counted: WindowCounts, snapshot: Snapshot | None) -> WakeWindow:
        at, plan = time.time(), snapshot.plan if snapshot is not None else None
        if plan is not self._places.plan:
            self._places = Places(plan)
        roster = PartyRoster(counted.parties, snapshot, self._places, self._homes)
        return tell_window(counted, roster, at=at)


def observing_ratio(snapshot: Snapshot | None) -> float:
    """Return the share of a core that observing costs apart from windows, as the agent counts."""
    ratios = snapshot.overhead.cpu_ratio if snapshot is not None else {}
    return sum(ratio for part, ratio in ratios.items() if part.startswith(("observe", "lint")))
