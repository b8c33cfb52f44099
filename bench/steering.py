"""The cost of steering: hooks per fork and rename, hints per second, a whole re-steer.

    python bench/steering.py [--threads N] [--rounds N] [--json]

It needs root and a kernel that allows BPF. It runs no engine, since hints cost the same
without one. Forks and renames are timed with and without the hooks alternately, in one run. The
kernel's own count of the hooks' time (kernel.bpf_stats_enabled) is printed beside it.
"""

import ctypes
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bpf_programs import counted_by_kernel, mean_run_ns, report
from observe_tick import threads_running

from temper_core.bpf import maps
from temper_core.node.cgroups import CgroupTree, detect_cgroups
from temper_core.node.topology import read_machine
from temper_core.records.layers import Layer
from temper_core.records.plans import LayerPlan
from temper_core.records.steering import FIXED_HINTS
from temper_core.records.tiers import LayerKind
from temper_core.settings.models import SchedulerSettings
from temper_core.steering.kernel import HINTS, KernelRule, Policy, SteeringKernel
from temper_core.steering.opening import open_steerer
from temper_core.steering.steerer import Steerer

PR_SET_NAME = 15
SYS_PIDFD_OPEN = 434
PIDFD_THREAD = os.O_EXCL
TURNS_S = 30.0
RENAMES, FORKS, WRITES = 20_000, 150, 2_000
LIBC = ctypes.CDLL(None, use_errno=True)
RULES = tuple(KernelRule(number, comm=f"prefix-{number:02}-") for number in range(20, 32))


def us_per_rename() -> float:
    """Return the time of one change of this thread's name, in µs."""
    began = time.perf_counter()
    for _ in range(RENAMES):
        LIBC.prctl(PR_SET_NAME, b"bench-renames", 0, 0, 0)
    return (time.perf_counter() - began) / RENAMES * 1e6


def us_per_fork() -> float:
    """Return the time of a fork, the child's exit and the wait for it, in µs."""
    began = time.perf_counter()
    for _ in range(FORKS):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    return (time.perf_counter() - began) / FORKS * 1e6


def opened() -> SteeringKernel:
    """Load the object with a full table of rules for a pod, so that all are evaluated."""
    kernel = SteeringKernel.open()
    own_cgroup = Path("/proc/self/cgroup").read_text().splitlines()[-1].rpartition(":")[2]
    root = Path("/sys/fs/cgroup/unified")
    place = (root if root.is_dir() else root.parent) / own_cgroup.lstrip("/")
    kernel.set_table({place.stat().st_ino: Policy(RULES, 2)}, (), 2)
    return kernel


def with_and_without(work: Callable[[], float], rounds: int) -> dict[str, float]:
    """Time *work* with and without the hooks alternately. Return the medians and their ratio."""
    without, hooked = [], []
    for _ in range(rounds):
        without.append(work())
        with opened():
            hooked.append(work())
    plain_us, hooked_us = statistics.median(without), statistics.median(hooked)
    return {
        "without_us": round(plain_us, 3),
        "with_us": round(hooked_us, 3),
        "ratio": round(hooked_us / plain_us, 3),
    }


def hook_ns() -> dict[str, int]:
    """Return the kernel's mean ns per run of each hook."""
    with counted_by_kernel(), opened() as kernel:
        us_per_rename()
        us_per_fork()
        programs = kernel._skeleton.programs  # noqa: SLF001 - nothing but a bench asks for these
        means = {name: mean_run_ns(fd) for name, fd in programs.items()}
    return {name: mean for name, mean in means.items() if mean}


def us_per_hint() -> dict[str, float]:
    """Return the cost of one hint by pidfd and by the BPF program, for existing threads, in µs."""
    with opened() as kernel:
        kernel.walk()
        rows = [row for row in kernel.records() if not row.flags & 1][:WRITES]
        began = time.perf_counter()
        decided = kernel.decide([(row.tid, row.start_ns, 20) for row in rows])
        by_program = time.perf_counter() - began
        hints = kernel._skeleton.maps[HINTS]  # noqa: SLF001 - as above
        began = time.perf_counter()
        for row in rows:
            _hint_by_pidfd(hints, row.tid, 21)
        by_pidfd = time.perf_counter() - began
    return {
        "threads": decided.applied,
        "by_program_us": round(by_program / len(rows) * 1e6, 2),
        "by_pidfd_us": round(by_pidfd / len(rows) * 1e6, 2),
    }


def _hint_by_pidfd(hints: int, tid: int, hint: int) -> None:
    pidfd = LIBC.syscall(SYS_PIDFD_OPEN, tid, PIDFD_THREAD)
    if pidfd < 0:
        return  # it has ended
    try:
        value = hint.to_bytes(8, sys.byteorder) + bytes(24)
        maps.update(hints, pidfd.to_bytes(4, sys.byteorder), value)
    finally:
        os.close(pidfd)


def resteer_ms(rounds: int) -> dict[str, float]:
    """Return the time of giving every thread another hint, and of a walk without changes."""
    changed, unchanged, python = [], [], []
    with opened() as kernel:
        for number in range(rounds):
            kernel.set_table({}, (), 3 + number % 2)
            changed.append(kernel.walk())
            unchanged.append(kernel.walk())
            began = time.perf_counter()
            sum(1 for _ in kernel.records())
            python.append(time.perf_counter() - began)
    return {
        "threads": changed[-1].seen,
        "hints_written": changed[-1].written,
        "all_change_ms": round(statistics.median(w.took_ns for w in changed) / 1e6, 3),
        "none_changes_ms": round(statistics.median(w.took_ns for w in unchanged) / 1e6, 3),
        "ns_per_thread": round(
            statistics.median(w.took_ns for w in unchanged) / unchanged[-1].seen
        ),
        "reading_every_record_ms": round(statistics.median(python) * 1e3, 2),
    }


@contextmanager
def steering() -> Iterator[Steerer]:
    """Steer with a pin in a BPF file system of its own. Two plain rules, none in user space."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        mounted = directory / "bpf"
        mounted.mkdir()
        subprocess.run(["mount", "-t", "bpf", "bpf", mounted], check=True)
        try:
            settings = SchedulerSettings(steering_pin=str(mounted / "temper/hints"))
            steerer = open_steerer(settings, CgroupTree(detect_cgroups().unified), directory)
            try:
                yield steerer
            finally:
                steerer.close()
        finally:
            subprocess.run(["umount", "--lazy", mounted], check=True)


def whole_turns(seconds: float) -> dict[str, float]:
    """Return the CPU time of an agent's turns of steering, with the pauses that they ask for."""
    layers = tuple(Layer(name, LayerKind.OPEN, ()) for name in FIXED_HINTS)
    plan = LayerPlan(read_machine(), layers, hints=FIXED_HINTS)
    took, pauses = [], []
    with steering() as steerer:
        steerer.ready(plan)
        began = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            cpu_began = time.thread_time()
            pauses.append(steerer.turn(now))
            took.append(time.thread_time() - cpu_began)
            time.sleep(pauses[-1])
        passed = time.monotonic() - began
        threads = steerer.state.threads
    return {
        "threads": threads,
        "turn_cpu_ms": round(statistics.median(took) * 1e3, 2),
        "pause_s": round(statistics.median(pauses), 2),
        "percent_of_a_core": round(sum(took) / passed * 100, 3),
    }


def measure(threads: int, rounds: int) -> dict[str, Any]:
    """Measure everything once."""
    figures: dict[str, Any] = {
        "rename": with_and_without(us_per_rename, rounds),
        "fork": with_and_without(us_per_fork, rounds),
        "hook_ns": hook_ns(),
    }
    with threads_running(threads, 0):
        figures["hint"] = us_per_hint()
        figures["resteer"] = resteer_ms(rounds)
        figures["turns"] = whole_turns(TURNS_S)
    return figures


if __name__ == "__main__":
    sys.exit(report(__doc__, measure, threads=5_000, rounds=11))
