"""The few threads of a walk that are worth a look, found without spelling out all of them.

A node has thousands of threads, and nearly all are where they belong. Their records are read by
columns of 64-bit words, and only what is left after that becomes a ``ThreadRecord``.
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
"""The engine's number for a thread that it has not looked at yet: MAX_LAYERS (1.1.4)."""
_IDS, _CGROUP, _STATE = 0, 2, 4
_TGID_SHIFT = 32
_TID = 0xFFFF_FFFF
_HINT_SHIFT, _LAYER_SHIFT, _FLAGS_SHIFT = 16, 32, 40


@frozen
class Wanted:
    """Which threads are to be spelt out: who is not at rest, and more.

    All of ``processes``. Those of ``cgroups`` unless they are ``settled``. With ``decided`` all
    for whom user space decided.
    """

    at_rest: AbstractSet[int]
    cgroups: AbstractSet[int] = frozenset()
    settled: Container[bytes] = ()
    processes: AbstractSet[int] = frozenset()
    decided: bool = False


def at_rest(hints: Mapping[str, int], layers: Sequence[str]) -> frozenset[int]:
    """Return all states of threads that need nothing: hinted as expected, and there if placed."""
    common = [sum(flags) for flags in product((0, IS_RUNNABLE), (0, IS_LEADER))]
    nowhere = {NO_LAYER, NOT_PLACED}
    numbers = {name: number for number, name in enumerate(layers)}
    found = {
        _state(NO_HINT, layer, flags | extra)
        for layer in (*range(NOT_PLACED + 1), NO_LAYER)
        for flags in common
        for extra in (IS_KERNEL, IS_KERNEL | IS_UNKNOWN)
    }
    for name, hint in hints.items():
        there = {numbers[name]} if name in numbers else set()
        extras = (0, IS_UNKNOWN, IS_DECIDED, IS_UNKNOWN | IS_DECIDED)
        for layer, flags, extra in product(there | nowhere, common, extras):
            found.add(_state(hint, layer, flags | extra))
    return frozenset(found)


def _state(hint: int, layer: int, flags: int) -> int:
    return hint | hint << _HINT_SHIFT | layer << _LAYER_SHIFT | flags << _FLAGS_SHIFT


def pick(content: bytes, wanted: Wanted) -> Iterator[ThreadRecord]:
    """Return the records in *content*, as a walk left it, that are *wanted*."""
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
        numbers.update(n for n, each in enumerate(ids) if each >> _TGID_SHIFT in wanted.processes)
    size = THREAD.size
    return read_threads(b"".join(content[n * size : (n + 1) * size] for n in sorted(numbers)))


def _key_at(content: bytes, number: int) -> bytes:
    """Return what a judgement of the thread rests on, and what is expected of it by now."""
    at = number * THREAD.size
    who, expected, name = (
        content[at : at + 24],
        content[at + 32 : at + 34],
        content[at + 40 : at + 56],
    )
    return who + expected + name


def key_of(record: ThreadRecord) -> bytes:
    """Return the key of a thread that is judged: another name or place makes another one."""
    return _key_at(THREAD.pack(*record[:7], 0, 0, record.comm.encode(errors="surrogateescape")), 0)


def tids(content: bytes) -> list[int]:
    """Return the thread ids in *content*, in its order."""
    return [each & _TID for each in memoryview(content).cast("Q")[_IDS::WORDS].tolist()]


def record_at(content: bytes, number: int) -> ThreadRecord:
    """Return one record of *content* by its place in it."""
    return next(read_threads(content[number * THREAD.size : (number + 1) * THREAD.size]))
