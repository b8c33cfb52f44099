"""Selection of the few threads of a walk that need attention, without parsing all records.

A node has thousands of threads, and nearly all are in their layer. Their records are read as
columns of 64-bit words. Only the selected ones become a ``ThreadRecord``.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product

from attrs import frozen

from temper_core.records.steering import NO_HINT
from temper_core.steering.kernel_records import (
    IS_DECIDED,
    IS_KERNEL,
    IS_LEADER,
    IS_RUNNABLE,
    IS_UNKNOWN,
    NO_LAYER,
    THREAD,
    ThreadRecord,
    read_threads,
)

WORDS = THREAD.size // 8
NOT_PLACED = 16
"""The engine's number for a thread that it has not placed yet: MAX_LAYERS (1.1.4)."""
_IDS, _CGROUP, _STATE = 0, 2, 4
_TGID_SHIFT = 32
_TID = 0xFFFF_FFFF
_HINT_SHIFT, _LAYER_SHIFT, _FLAGS_SHIFT = 16, 32, 40


@frozen
class Wanted:
    """The threads to select: those whose state is not ``at_rest``, and more.

    Selected are also all threads of ``processes``, those of ``cgroups`` whose key is not
    ``settled``, and with ``decided`` all that user space decided.
    """

    at_rest: AbstractSet[int]
    cgroups: AbstractSet[int] = frozenset()
    settled: Container[bytes] = ()
    processes: AbstractSet[int] = frozenset()
    decided: bool = False


def at_rest(hints: Mapping[str, int], layers: Sequence[str]) -> frozenset[int]:
    """Return the states of threads that need nothing: hint as expected, layer right if placed."""
    common = [sum(flags) for flags in product((0, IS_RUNNABLE), (0, IS_LEADER))]
    nowhere = {NO_LAYER, NOT_PLACED}
    numbers = {name: number for number, name in enumerate(layers)}
    states = {
        _state(NO_HINT, layer, flags | extra)
        for layer in (*range(NOT_PLACED + 1), NO_LAYER)
        for flags in common
        for extra in (IS_KERNEL, IS_KERNEL | IS_UNKNOWN)
    }
    for name, hint in hints.items():
        right_layer = {numbers[name]} if name in numbers else set()
        extras = (0, IS_UNKNOWN, IS_DECIDED, IS_UNKNOWN | IS_DECIDED)
        for layer, flags, extra in product(right_layer | nowhere, common, extras):
            states.add(_state(hint, layer, flags | extra))
    return frozenset(states)


def _state(hint: int, layer: int, flags: int) -> int:
    return hint | hint << _HINT_SHIFT | layer << _LAYER_SHIFT | flags << _FLAGS_SHIFT


def pick(content: bytes, wanted: Wanted) -> Iterator[ThreadRecord]:
    """Return the records of *content*, the buffer of a walk, that *wanted* selects."""
    words = memoryview(content).cast("Q")
    states = words[_STATE::WORDS].tolist()
    numbers = {number for number, state in enumerate(states) if state not in wanted.at_rest}
    if wanted.decided:
        decided = IS_DECIDED << _FLAGS_SHIFT
        numbers.update(n for n, state in enumerate(states) if state & decided)
    if wanted.cgroups:
        cgroups = words[_CGROUP::WORDS].tolist()
        inside = [n for n, cgroup in enumerate(cgroups) if cgroup in wanted.cgroups]
        numbers.update(n for n in inside if _key_at(content, n) not in wanted.settled)
    if wanted.processes:
        ids = words[_IDS::WORDS].tolist()
        numbers.update(n for n, word in enumerate(ids) if word >> _TGID_SHIFT in wanted.processes)
    size = THREAD.size
    return read_threads(b"".join(content[n * size : (n + 1) * size] for n in sorted(numbers)))


def _key_at(content: bytes, number: int) -> bytes:
    """Return the bytes that a decision rests on: ids, start, cgroup, expected hint and name."""
    at = number * THREAD.size
    identity, expected, name = (
        content[at : at + 24],
        content[at + 32 : at + 34],
        content[at + 40 : at + 56],
    )
    return identity + expected + name


def key_of(record: ThreadRecord) -> bytes:
    """Return the key of a decided thread. It changes with the thread's name or place."""
    return _key_at(THREAD.pack(*record[:7], 0, 0, record.comm.encode(errors="surrogateescape")), 0)


def tids(content: bytes) -> list[int]:
    """Return the thread ids in *content*, in its order."""
    return [word & _TID for word in memoryview(content).cast("Q")[_IDS::WORDS].tolist()]


def record_at(content: bytes, number: int) -> ThreadRecord:
    """Return record *number* of *content*."""
    return next(read_threads(content[number * THREAD.size : (number + 1) * THREAD.size]))
