"""Records into rings that wrap, until the trace is requested or a bound is reached."""

import time
from collections.abc import Callable

import numpy as np
from attrs import define, evolve, field

from temper_plugin_tracer.capture.bounds import Bounds, Ending
from temper_plugin_tracer.capture.bpf_recorder import BpfRecorder
from temper_plugin_tracer.capture.drained import Drained
from temper_plugin_tracer.capture.flight_cost import CostMeter
from temper_plugin_tracer.capture.flight_names import LastNames
from temper_plugin_tracer.capture.flight_status import FlightStatus
from temper_plugin_tracer.capture.recording import BYTES_OF_EVENT, Recorded, boot_ns

LOOK_EVERY_S = 0.2
COUNT_EVERY_S = 1.0
SETTLE_S = 0.005
"""Programs that run while they are detached end within this time."""
NS_PER_S = 1_000_000_000
SHARE_OF_EVENTS = 0.75
"""Of the bytes of a trace. The names and tracks have the rest."""


@define(eq=False)
class FlightRecording:
    """A recording of the newest events. *tell* is given its state once a second."""

    recorder: BpfRecorder
    kept_s: float
    tell: Callable[[FlightStatus], None]
    status: FlightStatus = FlightStatus()
    _cost: CostMeter = field(factory=CostMeter)
    _names: LastNames = field(init=False)
    _began_ns: int = 0

    def __attrs_post_init__(self) -> None:
        self._names = LastNames(int(self.kept_s * NS_PER_S))

    def run(
        self, duration_s: float, cpu_ratio: float, asked_ending: Callable[[], Ending | None]
    ) -> Ending:
        """Record until an end is asked for, *duration_s* is over or it costs too much.

        Returns ``Ending.SECONDS`` or ``Ending.BUDGET`` if the trace was not requested. Raises
        BpfError if the recorder cannot begin.
        """
        self._began_ns = boot_ns()
        self.recorder.begin()
        count_due_s = 0.0
        try:
            while True:
                ending = asked_ending()
                if ending is not None:
                    return ending
                now_s = self.elapsed_s
                if now_s >= duration_s:
                    return Ending.SECONDS
                self._names.add(self.recorder.take_names(), boot_ns())
                if now_s >= count_due_s:
                    count_due_s = now_s + COUNT_EVERY_S
                    self._count(now_s)
                    if self._cost.is_over(cpu_ratio):
                        return Ending.BUDGET
                time.sleep(min(LOOK_EVERY_S, max(0.0, duration_s - now_s)))
        finally:
            self.recorder.end()

    @property
    def elapsed_s(self) -> float:
        """For how long it has recorded."""
        return (boot_ns() - self._began_ns) / NS_PER_S

    def newest(self, bounds: Bounds, ending: Ending) -> tuple[Drained, Recorded]:
        """Return what the rings hold of the last *kept_s*, after ``run``.

        It begins where the ring of every CPU has all events, so that no CPU lacks some.
        """
        time.sleep(SETTLE_S)
        last = self.recorder.last()
        ended_ns = boot_ns()
        if last.names is not None:
            self._names.add(last.names, ended_ns)
        began_ns = max(self._began_ns, ended_ns - int(self.kept_s * NS_PER_S), self._whole_ns(last))
        most = min(bounds.events, int(bounds.bytes * SHARE_OF_EVENTS) // BYTES_OF_EVENT)
        began_ns = max(began_ns, _begin_of_newest(last, most))
        events = {cpu: _since(each, began_ns) for cpu, each in last.events.items()}
        drained = Drained(
            {cpu: each for cpu, each in events.items() if len(each)}, self._names.last(ended_ns)
        )
        names = 0 if drained.names is None else len(drained.names)
        recorded = Recorded(
            began_ns, ended_ns, ending, drained.count, names, self.recorder.losses()
        )
        return drained, recorded

    def _whole_ns(self, last: Drained) -> int:
        """Return the moment since which no event was overwritten on any CPU."""
        full = [each for each in last.events.values() if len(each) >= self.recorder.ring_events]
        return max((int(each["ns"][0]) for each in full), default=0)

    def _count(self, now_s: float) -> None:
        tally, own_s = self.recorder.tally(), time.process_time()
        self._cost.note(now_s, tally.seconds + own_s)
        most = max(self.recorder.reserved(), default=0)
        held_s = now_s * self.recorder.ring_events / most if most else now_s
        self.status = evolve(
            self.status,
            events=tally.events,
            held_s=round(min(now_s, held_s), 3),
            cpu_ratio=round(self._cost.ratio, 6),
            kernel_s=round(tally.seconds, 6),
            own_s=round(own_s, 6),
        )
        self.tell(self.status)


def _begin_of_newest(drained: Drained, most: int) -> int:
    """Return the time of the first of the newest *most* events."""
    if drained.count <= most:
        return 0
    all_ns = np.concatenate([each["ns"] for each in drained.events.values()])
    return int(np.partition(all_ns, len(all_ns) - most)[len(all_ns) - most])


def _since(events: np.ndarray, began_ns: int) -> np.ndarray:
    return events[int(np.searchsorted(events["ns"], np.uint64(began_ns), side="left")) :]
