"""The kernel side of steering: our BPF object, which owns the map of hints.

Its hooks set a thread's hint at fork, exec, rename and cgroup attach. A walk does so for the whole
node in one call, and records each thread's expected and actual layer. Only a pinned map outlives
this process.
"""

import itertools
import mmap
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from temper_core.bpf import maps
from temper_core.bpf.package import load_object
from temper_core.bpf.skeleton import Skeleton
from temper_core.errors import BpfError
from temper_core.records.executions import Execution
from temper_core.records.steering import FIXED_HINTS, SYSTEM
from temper_core.steering.kernel_records import (
    DECIDE_COUNTS,
    ELSEWHERE,
    EVENT_COUNTS,
    EXEC,
    HOOK_COUNTS,
    MOST_EXECS,
    MOST_POLICIES,
    MOST_RULES,
    MOST_WANTED,
    POLICY_KEY,
    THREAD,
    U32_PAIR,
    U64,
    WALK_COUNTS,
    WANTED,
    Control,
    EngineRecord,
    HintOutcomes,
    HookCounts,
    KernelRule,
    Policy,
    ThreadRecord,
    WalkCounts,
    read_threads,
)

__all__ = [
    "MOST_POLICIES",
    "MOST_RULES",
    "EngineRecord",
    "HintOutcomes",
    "HookCounts",
    "KernelRule",
    "Policy",
    "SteeringKernel",
    "ThreadRecord",
    "WalkCounts",
]

HINTS = "scx_layered_task_hint_map"
MOST_THREADS = 32_768
HOOKS = ("on_fork", "on_rename", "on_exec", "on_move", "on_birth", "on_death")
_OTHERS = 0o077
_NOT_KNOWN = b""


class SteeringKernel:
    """The loaded object with its hooks attached. Make it with ``open`` and ``close`` it."""

    def __init__(self, skeleton: Skeleton, threads: int) -> None:
        self._skeleton = skeleton
        with ExitStack() as opened:
            self._control = self._memory(opened, "control", Control.SIZE)
            self._records = self._memory(opened, "records", THREAD.size * threads)
            self._wants = self._memory(opened, "wants", WANTED.size * MOST_WANTED)
            self._execs = self._memory(opened, "execs", EXEC.size * MOST_EXECS)
            self._memories = opened.pop_all()
        self._table: dict[bytes, bytes] = {}
        self._generation = self._epoch = 0
        self._recorded = 0
        self._next_generation(bump=True)

    @classmethod
    def open(cls, *, threads: int = MOST_THREADS) -> Self:
        """Load the object and attach its hooks, in some 25 ms. Raises ``BpfError``.

        No thread gets a hint before the first table. A walk has room for *threads* records.
        """
        with ExitStack() as opened:
            skeleton = load_object(__package__, "steer", max_entries={"records": threads})
            opened.enter_context(skeleton)
            kernel = cls(skeleton, threads)
            opened.enter_context(kernel)
            for hook in HOOKS:
                skeleton.attach(hook)
            opened.pop_all()
        return kernel

    @property
    def map_id(self) -> int:
        """The kernel's id of the map of hints."""
        return maps.info(self._skeleton.maps[HINTS]).id

    def set_table(
        self,
        policies: Mapping[int, Policy],
        processes: Sequence[KernelRule],
        default_hint: int,
        *,
        bump: bool = False,
    ) -> None:
        """Make the hooks and the next walk use this table. Only changed entries are written.

        *policies* are keyed by cgroup ids. For a thread that none covers, the rules in *processes*
        count, and then *default_hint*. A hint on a kernel thread becomes that of the system layer.
        With *bump* all earlier decisions are void.
        Raises ``BpfError``, with some entries replaced, for more than ``MOST_POLICIES`` entries,
        and ValueError for too many rules.
        """
        # First, so that it is written even if not all others fit.
        table = {ELSEWHERE: Policy(tuple(processes), default_hint).pack()}
        table |= {POLICY_KEY.pack(cgroup): policy.pack() for cgroup, policy in policies.items()}
        changes = [(key, value) for key, value in table.items() if self._table.get(key) != value]
        removed = self._table.keys() - table.keys()
        if changes or removed or bump:
            self._next_generation(bump=bump)
        U64.pack_into(self._control, Control.KERNEL_HINT, FIXED_HINTS[SYSTEM])
        descriptor = self._skeleton.maps["policies"]
        for key in removed:
            maps.delete(descriptor, key)
            del self._table[key]
        # Marked unknown before the write and recorded after it. After a failure in between, the
        # next call writes or removes these entries again.
        self._table.update((key, _NOT_KNOWN) for key, _ in changes)
        maps.update_many(descriptor, changes)
        self._table.update(changes)

    def pin(self, path: Path) -> None:
        """Pin the map of hints for the engine, in a directory that only this user may enter.

        Raises ``BpfError`` if others may enter the directory, because the engine makes the pin
        world-writable. ``PinPlace`` makes such a directory.
        """
        try:
            status = path.parent.lstat()
        except OSError as error:
            raise BpfError(
                f"cannot pin the map of hints: {path.parent}", error.errno or 0
            ) from error
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & _OTHERS:
            raise BpfError(f"{path.parent} is open to others, so they could change hints")
        maps.pin(self._skeleton.maps[HINTS], path)

    def walk(self, *, engine: EngineRecord | None = None, write: bool = True) -> WalkCounts:
        """Visit every thread of the node, and correct its hint unless *write* is false.

        It takes about 0.3 us a thread. With *engine* the records have the engine's layer of each.
        """
        flags = Control.EMITS | (Control.WRITES if write else 0)
        map_id, offset = (engine.map_id, engine.layer_offset) if engine else (0, 0)
        U32_PAIR.pack_into(self._control, Control.EPOCH_AND_FLAGS, self._epoch, flags)
        U32_PAIR.pack_into(self._control, Control.ENGINE, map_id, offset)
        self._skeleton.run("walk")
        counts = WALK_COUNTS.unpack_from(self._control, Control.WALK)
        threads, self._recorded, dropped, hints, corrected, took_ns = counts
        return WalkCounts(threads, hints, corrected, dropped, took_ns)

    def records(self) -> Iterator[ThreadRecord]:
        """Return the records of the last walk. Later walks do not change them."""
        return read_threads(self.content())

    def content(self) -> bytes:
        """Return the records of the last walk as packed bytes, for callers that need only few."""
        return self._records[: THREAD.size * self._recorded]

    def decide(self, wanted: Iterable[tuple[int, int, int]]) -> HintOutcomes:
        """Set hints that the table cannot express. A row is a tid, its start in ns and the hint.

        A decision counts until the thread is renamed or changes its cgroup, or *bump* voids it.
        ``NO_HINT`` returns a thread to the table.
        """
        rows = iter(wanted)
        applied = gone = reused = 0
        while batch := list(itertools.islice(rows, MOST_WANTED)):
            for place, (tid, start_ns, hint) in enumerate(batch):
                WANTED.pack_into(self._wants, WANTED.size * place, tid, hint, start_ns)
            U64.pack_into(self._control, Control.WANTED, len(batch))
            self._skeleton.run("decide")
            counts = DECIDE_COUNTS.unpack_from(self._control, Control.DECIDED)
            applied, gone, reused = applied + counts[0], gone + counts[1], reused + counts[2]
        return HintOutcomes(applied, gone, reused)

    @property
    def counted(self) -> HookCounts:
        """The hooks' counters so far."""
        return HookCounts(*HOOK_COUNTS.unpack_from(self._control, Control.HOOKS))

    @property
    def cgroup_events(self) -> int:
        """The number of cgroups made or removed so far, read from mapped memory."""
        births, deaths = EVENT_COUNTS.unpack_from(self._control, Control.EVENTS)
        return int(births + deaths)

    @property
    def exec_count(self) -> int:
        """The number of programs executed so far, read from mapped memory."""
        return int(U64.unpack_from(self._control, Control.EXECS)[0])

    def executions(self, seen: int) -> tuple[list[Execution], int]:
        """Return the executions after the first *seen*, and the number that are seen then.

        The list is shorter than the difference of the two numbers if some were overwritten: only
        the last ``MOST_EXECS`` are kept. One that is just being written is left to the next call.
        """
        count = self.exec_count
        executions: list[Execution] = []
        for number in range(max(seen, count - MOST_EXECS), count):
            written, pid, parent = EXEC.unpack_from(self._execs, EXEC.size * (number % MOST_EXECS))
            if written <= number:
                return executions, number
            if written == number + 1:
                executions.append(Execution(pid, parent))
        return executions, count

    def close(self) -> None:
        """Detach the hooks and close the maps. A second call does nothing."""
        self._memories.close()
        self._skeleton.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _memory(self, opened: ExitStack, name: str, size: int) -> mmap.mmap:
        return opened.enter_context(self._skeleton.memory(name, size))

    def _next_generation(self, *, bump: bool) -> None:
        self._generation += 1
        self._epoch += bump
        U64.pack_into(self._control, Control.GENERATION, self._generation)
        U32_PAIR.pack_into(self._control, Control.EPOCH_AND_FLAGS, self._epoch, 0)
