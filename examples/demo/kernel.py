"""Reads the state of the kernel's scheduler."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

SCHED_EXT = Path("/sys/kernel/sched_ext")
ENGINE = "scx_layered"


class NotInTime(Exception):  # noqa: N818 - reads as the fact it reports
    """Raised when an expected state is not reached in time."""


def state() -> str:
    """Return ``enabled`` while a sched_ext scheduler runs, ``disabled`` under the stock one."""
    return (SCHED_EXT / "state").read_text().strip()


def operations() -> str:
    """Return the name of the attached scheduler, or an empty string."""
    try:
        return (SCHED_EXT / "root/ops").read_text().strip()
    except OSError:
        return ""


def attaches() -> int:
    """Return the number of schedulers attached since boot."""
    return int((SCHED_EXT / "enable_seq").read_text())


def engines() -> list[int]:
    """Return the process ids of all running engines, without zombies."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if _is_engine(entry)]


def _is_engine(entry: Path) -> bool:
    try:
        return (
            entry.name.isdigit()
            and (entry / "comm").read_text().strip() == ENGINE
            and " Z " not in (entry / "stat").read_text()
        )
    except OSError:
        return False


def last_cpu(pid: int) -> int:
    """Return the CPU that a process's main thread ran on last."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return int(fields[36])


def wait_until(what: str, holds: Callable[[], object], within_s: float) -> float:
    """Wait until *holds*. Return the seconds it took, or raise NotInTime."""
    start = time.monotonic()
    while not holds():
        if time.monotonic() - start > within_s:
            raise NotInTime(f"{what}: not within {within_s:.0f} s")
        time.sleep(0.02)
    return time.monotonic() - start


class StateWatch:
    """Measures the time without a sched_ext scheduler, to some milliseconds."""

    def __init__(self) -> None:
        self._without_s = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def end(self) -> float:
        """Stop watching. Return the seconds in which the state was not ``enabled``."""
        self._is_over.set()
        self._thread.join()
        return self._without_s

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._is_over.wait(0.005):
            is_ours, now = state() == "enabled", time.monotonic()
            self._without_s += 0.0 if is_ours else now - before
            before = now
