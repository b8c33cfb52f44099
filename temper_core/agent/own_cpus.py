"""Keeps the agent and its engine off the CPUs that a tier lends.

Both preempt. On a lent CPU they delay the threads of its tier, which any other guest does not.
The engine serves a thread of restricted affinity from its low fallback queue: at once where a CPU
would idle, otherwise for a twentieth of a CPU's time. Its own threads come first on any CPU
(``layered_enqueue``, ``layered_dispatch`` and ``is_scheduler_task`` of scx_layered 1.1.4).
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from temper_core.records.layers import Layer
from temper_core.records.snapshots import LayerSample
from temper_core.steering.thread_identity import start_ticks_in


def lent_cpus(layers: Iterable[Layer], samples: Iterable[LayerSample]) -> frozenset[int]:
    """Return the CPUs of tiers that others use while they are idle, and that take them back."""
    lending = {
        layer.name
        for layer in layers
        if layer.tier is not None and layer.preempt and not layer.protected
    }
    return frozenset(cpu for sample in samples if sample.name in lending for cpu in sample.cpus)


class OwnCpus:
    """The affinity of the agent's threads and of the engine's.

    It is restricted while CPUs are lent, and is otherwise what the agent was started with. An
    engine that loads beside the attached one keeps all CPUs, since it is an ordinary thread
    until then and would load slowly.
    """

    def __init__(self, proc_root: str = "/proc") -> None:
        self._proc = Path(proc_root)
        self._all = frozenset(os.sched_getaffinity(0))
        self._is_restricted = False

    def follow(
        self, lent: frozenset[int], attached_pid: int | None, engine_pids: Sequence[int] = ()
    ) -> None:
        """Keep off *lent*. Without other CPUs, or without an attached engine, use all."""
        allowed = self._all - lent if attached_pid is not None else self._all
        allowed = allowed or self._all
        if allowed == self._all and not self._is_restricted:
            return
        self._is_restricted = allowed != self._all
        loading = frozenset(engine_pids) - {attached_pid}
        for pid in {os.getpid(), *engine_pids}:
            self._bind(pid, self._all if pid in loading else allowed)

    def _bind(self, pid: int, cpus: frozenset[int]) -> None:
        for tid in self._threads(pid):
            with suppress(ProcessLookupError, FileNotFoundError):
                if os.sched_getaffinity(tid) != cpus:
                    self._move(pid, tid, cpus)

    def _move(self, pid: int, tid: int, cpus: frozenset[int]) -> None:
        """Set the affinity of a thread of *pid*. Raises an error of one that has ended.

        Its id may go to a thread of another process at any time.
        """
        process = self._proc / str(pid)
        start_ticks = start_ticks_in(process, tid)
        # Read after the look, so that of another thread that has the id by now, it is its own.
        before = os.sched_getaffinity(tid)
        os.sched_setaffinity(tid, cpus)
        if not _is_thread_of(process, tid, start_ticks):
            os.sched_setaffinity(tid, before)

    def _threads(self, pid: int) -> list[int]:
        try:
            return [int(entry.name) for entry in (self._proc / str(pid) / "task").iterdir()]
        except FileNotFoundError:
            return []


def _is_thread_of(process: Path, tid: int, start_ticks: int) -> bool:
    try:
        return start_ticks_in(process, tid) == start_ticks
    except (FileNotFoundError, ProcessLookupError):
        return False
