"""Records what the CPUs run while an engine attaches, by an instance of the kernel's tracefs."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TRACEFS = Path("/sys/kernel/tracing")
NAME = "temper-failures"
EVENTS = ("sched/sched_switch", "sched/sched_waking", "sched_ext", NAME.replace("-", "_"))
PROBES = (
    "p:temper_failures/bypass scx_bypass on=$arg1:u8",
    "p:temper_failures/bypass_set scx_bypass%return",
)
"""The calls by which the kernel begins and ends scheduling without the programs of an engine."""
KIB_A_CPU = 8192
"""Some 20 s of events. Older ones are overwritten."""


class SchedulingTrace:
    """An instance below *tracefs* that records from :meth:`begin` until :meth:`stop`."""

    def __init__(self, tracefs: Path = TRACEFS) -> None:
        self._tracefs, self._path = tracefs, tracefs / "instances" / NAME

    def begin(self) -> None:
        """Make the instance, with times of CLOCK_MONOTONIC. What the kernel lacks is left out."""
        for probe in PROBES:
            self._try(self._tracefs / "kprobe_events", probe)
        self._path.mkdir(exist_ok=True)
        self._try(self._path / "trace_clock", "mono")
        self._try(self._path / "buffer_size_kb", str(KIB_A_CPU))
        for event in EVENTS:
            self._try(self._path / "events" / event / "enable", "1")

    def stop(self) -> None:
        """Record no more."""
        (self._path / "tracing_on").write_text("0")

    def save(self, file: Path) -> None:
        """Write what was recorded to a file, as the kernel's text."""
        with (self._path / "trace").open("rb") as recorded, file.open("wb") as saved:
            while part := recorded.read(1 << 20):
                saved.write(part)

    def remove(self) -> None:
        """Remove the instance and its probes."""
        for event in EVENTS:
            self._try(self._path / "events" / event / "enable", "0")
        self._path.rmdir()
        for probe in PROBES:
            self._try(self._tracefs / "kprobe_events", f"-:{probe.split()[0][2:]}")

    @staticmethod
    def _try(file: Path, text: str) -> None:
        with contextlib.suppress(OSError), file.open("a") as written:
            written.write(text)


@contextmanager
def recorded(file: Path | None, tracefs: Path = TRACEFS) -> Iterator[SchedulingTrace | None]:
    """Record during the block, and write to a file then. Do nothing where there is no file."""
    if file is None:
        yield None
        return
    trace = SchedulingTrace(tracefs)
    trace.begin()
    try:
        yield trace
        trace.save(file)
    finally:
        trace.remove()
