"""The layouts that ``records.h`` and ``recorder.bpf.c`` share with user space."""

import struct
from typing import Final

import numpy as np

from temper_plugin_tracer.capture.selection import MOST_CGROUPS, Selection

EVENT_BYTES: Final = 32
NAME_BYTES: Final = 56
RING_BYTES: Final = 128

NAME: Final = np.dtype(
    [
        ("ns", "<u8"),
        ("cgroup", "<u8"),
        ("tid", "<u4"),
        ("tgid", "<u4"),
        ("comm", "S16"),
        ("kind", "<u2"),
        ("is_selected", "<u2"),
        ("flags", "<u4"),
        ("parent", "<u4"),
        ("lap", "<u4"),
    ]
)
"""The name of a thread at a moment. It ``is_selected`` if the capture has a selection, and
the thread belonged to it then. ``flags`` are those of task_struct. Of a new thread bcc notes the
one that has made it as ``parent``."""

RING: Final = np.dtype(
    {
        "names": [
            "reserved",
            "lost",
            "timed",
            "timed_ns",
            "passed",
            "taken",
            "near",
            "is_left_out",
            "is_open",
        ],
        "formats": ["<u8"] * 9,
        "offsets": [0, 8, 24, 32, 40, 64, 72, 80, 88],
        "itemsize": RING_BYTES,
    }
)
"""The state of a ring. User space writes ``taken``, ``is_left_out`` and ``is_open``."""

LIVES, FORKED, EXECUTED, RENAMED, EXITED = 1, 2, 3, 4, 5
"""Kinds of a ``NAME``."""

_SETTINGS = struct.Struct(f"<Q{MOST_CGROUPS}Q{MOST_CGROUPS}I11I4x")
NEAR_NS: Final = 1_000_000_000
"""How long a CPU is recorded after a selected thread last ran there or was queued there."""
DUE_PART: Final = 16
"""A drain is due when a ring is full by this part. The rest holds what comes until the drain."""


def settings_of(
    selection: Selection, *, ring_bits: int, name_bits: int, wraps: bool = False
) -> bytes:
    """Return the constants of the object."""
    cgroups = selection.cgroups[:MOST_CGROUPS]
    rest = [0] * (MOST_CGROUPS - len(cgroups))
    return _SETTINGS.pack(
        NEAR_NS,
        *(choice.id for choice in cgroups),
        *rest,
        *(choice.level for choice in cgroups),
        *rest,
        len(cgroups),
        not selection.is_whole_node,
        bool(selection.processes),
        bool(selection.cpus),
        1 << ring_bits,
        1 << name_bits,
        ring_bits,
        name_bits,
        wraps,
        due_of(ring_bits),
        due_of(name_bits),
    )


def due_of(bits: int) -> int:
    """Return how many records of a ring of 2^*bits* make a drain due, a power of two."""
    return max(1, (1 << bits) // DUE_PART)


def names_of(names: np.ndarray) -> list[tuple[int, str]]:
    """Return tid and name of each record."""
    comms = [text_of(comm) for comm in names["comm"].tolist()]
    return list(zip(names["tid"].tolist(), comms, strict=True))


def text_of(comm: bytes) -> str:
    """Return a thread's name as text."""
    return comm.split(b"\0", 1)[0].decode("utf-8", "replace")
