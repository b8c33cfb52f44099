"""The records exchanged with the steering object in the kernel, and their memory layouts.

``steer.bpf.c`` has the same layouts.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from attrs import field, frozen

from temper_core.records.steering import NO_HINT

MOST_RULES = 16
MOST_POLICIES = 8_191
MOST_WANTED = 4_096
MOST_EXECS = 1_024
COMM_BYTES = 16
"""The size of a name in the kernel, its closing zero included. No longer prefix ever matches."""
NO_LAYER = 255

IS_KERNEL = 1
IS_RUNNABLE = 2
IS_DECIDED = 4
IS_UNKNOWN = 8
IS_LEADER = 16

THREAD = struct.Struct("<IIQQQHHBBxx16s")
WANTED = struct.Struct("<IIQ")
EXEC = struct.Struct("<QII")
POLICY_KEY = struct.Struct("<Q")
ELSEWHERE = POLICY_KEY.pack(0)
"""The key of the rules for threads that no cgroup's policy covers."""
_RULE = struct.Struct("<16s16s16s16sHBB4x")
_POLICY = struct.Struct("<HHI")
_EXACT = 1
_BY_PROCESS = 2
_TRAIT_LEADER = 1
_TRAIT_ROOT = 2


class Control:
    """Offsets of the fields of ``struct control``. All but the two pairs are one u64 each."""

    SIZE = 216
    GENERATION = 0
    EPOCH_AND_FLAGS = 8
    ENGINE = 16
    WANTED = 24
    KERNEL_HINT = 32
    HOOKS = 40
    EVENTS = 64
    WALK = 120
    DECIDED = 168
    EXECS = 200
    WRITES = 1
    EMITS = 2


U64 = struct.Struct("<Q")
U32_PAIR = struct.Struct("<II")
HOOK_COUNTS = struct.Struct("<8Q")
EVENT_COUNTS = struct.Struct("<QQ")
WALK_COUNTS = struct.Struct("<6Q")
DECIDE_COUNTS = struct.Struct("<3Q")


def _fits_hint(_: object, __: object, hint: int) -> None:
    if not 0 <= hint <= NO_HINT:
        raise ValueError(f"a hint is 0 to {NO_HINT}, not {hint}")


@frozen
class KernelRule:
    """A rule that the kernel side can evaluate. A thread that meets all conditions gets the hint.

    ``comm`` and ``process`` are prefixes of the names of the thread and of its leader. ``leader``
    selects threads that do or do not lead their process, None both. ``root_only`` requires the
    effective user id 0.
    """

    hint: int = field(validator=_fits_hint)
    comm: str = ""
    process: str = ""
    leader: bool | None = None
    root_only: bool = False

    def pack(self) -> bytes:
        """Return it as ``struct rule``."""
        traits_mask = (0 if self.leader is None else _TRAIT_LEADER) | (
            _TRAIT_ROOT if self.root_only else 0
        )
        traits = (_TRAIT_LEADER if self.leader else 0) | (_TRAIT_ROOT if self.root_only else 0)
        return _RULE.pack(
            *_masked(self.comm), *_masked(self.process), self.hint, traits, traits_mask
        )


def _masked(prefix: str) -> tuple[bytes, bytes]:
    text = prefix.encode(errors="surrogateescape")[:COMM_BYTES]
    return text, b"\xff" * len(text)


def _fits_rules(_: object, __: object, rules: Sequence[KernelRule]) -> None:
    if len(rules) > MOST_RULES:
        raise ValueError(f"{len(rules)} rules are more than {MOST_RULES}")


@frozen
class Policy:
    """The rules for the threads of one cgroup and of those below it. The first match counts.

    An ``exact`` policy covers only threads directly in the cgroup. ``NO_HINT`` leaves a thread
    as it is. More than ``MOST_RULES`` rules are a ValueError.
    """

    rules: tuple[KernelRule, ...] = field(validator=_fits_rules)
    otherwise: int = field(validator=_fits_hint)
    exact: bool = False

    def pack(self) -> bytes:
        """Return it as ``struct policy``."""
        by_process = any(rule.process for rule in self.rules)
        flags = (_EXACT if self.exact else 0) | (_BY_PROCESS if by_process else 0)
        head = _POLICY.pack(len(self.rules), self.otherwise, flags)
        rules = b"".join(rule.pack() for rule in self.rules)
        return head + rules + bytes(_RULE.size * (MOST_RULES - len(self.rules)))


@frozen
class EngineRecord:
    """The place of a thread's layer in a running engine: the map's id and the byte offset."""

    map_id: int
    layer_offset: int


class ThreadRecord(NamedTuple):
    """One thread as of the last walk. Times are in ns, the start since boot.

    ``expected`` and ``hint`` are ``NO_HINT`` if there is none. ``layer`` is the engine's number,
    None if it has no record of the thread. A number that no layer has means that the engine has
    not placed the thread yet.
    """

    tid: int
    tgid: int
    start_ns: int
    cgroup_id: int
    run_ns: int
    expected: int
    hint: int
    layer: int | None
    flags: int
    comm: str

    @property
    def is_kernel(self) -> bool:
        """Whether it is a kernel thread. These get a hint only to replace a wrong one."""
        return bool(self.flags & IS_KERNEL)

    @property
    def is_runnable(self) -> bool:
        """Whether it was running, or waiting for a CPU."""
        return bool(self.flags & IS_RUNNABLE)

    @property
    def is_decided(self) -> bool:
        """Whether user space decided its layer."""
        return bool(self.flags & IS_DECIDED)

    @property
    def is_leader(self) -> bool:
        """Whether it leads its process."""
        return bool(self.flags & IS_LEADER)


class _Names(dict[bytes, str]):
    """A cache of decoded names, because few differ."""

    def __missing__(self, comm: bytes) -> str:
        text = self[comm] = comm.split(b"\0", 1)[0].decode(errors="surrogateescape")
        return text


def read_threads(content: bytes) -> Iterator[ThreadRecord]:
    """Read the records of a walk."""
    names = _Names()
    for fields in THREAD.iter_unpack(content):
        tid, tgid, start_ns, cgroup_id, run_ns, expected, hint, layer, flags, comm = fields
        yield ThreadRecord(
            tid,
            tgid,
            start_ns,
            cgroup_id,
            run_ns,
            expected,
            hint,
            None if layer == NO_LAYER else layer,
            flags,
            names[comm],
        )


@frozen
class HookCounts:
    """The hooks' counters since the object was loaded.

    ``births`` and ``deaths`` are cgroups made and removed. ``written`` are hints set or changed.
    ``failed`` are hints that the kernel had no memory for. ``postponed`` are threads of processes
    too large for a hook, which the next walk corrects.
    """

    forks: int
    renames: int
    moves: int
    births: int
    deaths: int
    written: int
    failed: int
    postponed: int


@frozen
class WalkCounts:
    """The counters of one walk.

    Of the hints ``written``, those that another process had changed are ``corrected``: the table
    is the same as at the walk before, and no hook has postponed any. ``dropped`` counts threads
    that did not fit among the records. ``took_ns`` is the duration in ns.
    """

    seen: int
    written: int
    corrected: int
    dropped: int
    took_ns: int


@frozen
class HintOutcomes:
    """The number of decisions by outcome: ``applied``, thread ``gone``, or tid ``reused``.

    Kernel threads and exiting threads count as gone.
    """

    applied: int = 0
    gone: int = 0
    reused: int = 0
