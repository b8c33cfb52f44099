"""bpf(2) by its number: one command, one attribute block, a result or a ``BpfError``."""

import ctypes
import platform
from collections.abc import Mapping
from enum import IntEnum
from typing import TypeAlias

from temper_core.errors import BpfError

NUMBERS: Mapping[str, int] = {"x86_64": 321, "aarch64": 280}
"""The number of bpf(2) by the machine's name, from the syscall tables of Linux."""

Buffer: TypeAlias = ctypes.Array[ctypes.c_char]


class Command(IntEnum):
    """The commands used here: ``enum bpf_cmd`` of linux/bpf.h."""

    MAP_CREATE = 0
    MAP_LOOKUP_ELEM = 1
    MAP_UPDATE_ELEM = 2
    MAP_DELETE_ELEM = 3
    MAP_GET_NEXT_KEY = 4
    PROG_LOAD = 5
    OBJ_PIN = 6
    OBJ_GET = 7
    PROG_TEST_RUN = 10
    MAP_GET_NEXT_ID = 12
    MAP_GET_FD_BY_ID = 14
    OBJ_GET_INFO_BY_FD = 15
    RAW_TRACEPOINT_OPEN = 17
    BTF_GET_FD_BY_ID = 19
    MAP_LOOKUP_AND_DELETE_BATCH = 25
    MAP_UPDATE_BATCH = 26
    LINK_CREATE = 28
    ITER_CREATE = 33


_library = ctypes.CDLL(None, use_errno=True)
_number = NUMBERS.get(platform.machine())


def call(command: Command, attributes: bytes | bytearray, what: str) -> tuple[int, bytes]:
    """Call bpf(2). Return its result and the attributes as the kernel left them.

    Buffers that *attributes* point to must stay alive until this returns. A failure raises a
    ``BpfError`` whose message begins with *what*.
    """
    block = ctypes.create_string_buffer(bytes(attributes), len(attributes))
    result = attempt(command, block, what)
    if result < 0:
        raise BpfError(what, -result)
    return result, block.raw


def attempt(command: Command, block: Buffer, what: str) -> int:
    """Call bpf(2) with attributes in *block*, which the kernel may change.

    Returns the result or the negated error number, because some errors come with results.
    """
    if _number is None:
        names = ", ".join(NUMBERS)
        raise BpfError(f"{what}: no number of bpf(2) is known for {platform.machine()} ({names})")
    result: int = _library.syscall(_number, int(command), block, len(block))
    return result if result >= 0 else -ctypes.get_errno()


def buffer(content: bytes) -> Buffer:
    """Copy *content* to a buffer that the kernel can read and write."""
    return ctypes.create_string_buffer(content, len(content))
