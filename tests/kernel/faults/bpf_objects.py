"""Names of all BPF programs and maps that the kernel holds, whoever made them."""

import ctypes
import os
import struct
from collections.abc import Iterator

BPF = 321  # the system call's number on x86-64
PROG_GET_NEXT_ID, MAP_GET_NEXT_ID = 11, 12
PROG_GET_FD_BY_ID, MAP_GET_FD_BY_ID = 13, 14
OBJ_GET_INFO_BY_FD = 15
# where the 16 bytes of the name are in bpf_prog_info and bpf_map_info (linux/bpf.h)
PROG_NAME, MAP_NAME = 64, 24
INFO_BYTES = 256
_libc = ctypes.CDLL(None, use_errno=True)


def names() -> Iterator[str]:
    """Yield ``program NAME`` or ``map NAME`` for everything that is loaded."""
    yield from _named("program", PROG_GET_NEXT_ID, PROG_GET_FD_BY_ID, PROG_NAME)
    yield from _named("map", MAP_GET_NEXT_ID, MAP_GET_FD_BY_ID, MAP_NAME)


def _named(kind: str, next_id: int, fd_by_id: int, offset: int) -> Iterator[str]:
    number = 0
    while (found := _next(next_id, number)) is not None:
        number = found
        descriptor, _ = _bpf(fd_by_id, struct.pack("=III", number, 0, 0))
        if descriptor >= 0:  # else it is gone by now
            yield f"{kind} {_name(descriptor, offset)}"


def _next(command: int, number: int) -> int | None:
    result, answer = _bpf(command, struct.pack("=III", number, 0, 0))
    return None if result < 0 else int(struct.unpack_from("=I", answer, 4)[0])


def _name(descriptor: int, offset: int) -> str:
    info = ctypes.create_string_buffer(INFO_BYTES)
    _bpf(OBJ_GET_INFO_BY_FD, struct.pack("=IIQ", descriptor, INFO_BYTES, ctypes.addressof(info)))
    os.close(descriptor)
    return info.raw[offset : offset + 16].split(b"\0")[0].decode(errors="replace")


def _bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    attr = ctypes.create_string_buffer(attributes, len(attributes))
    return _libc.syscall(BPF, command, attr, len(attributes)), attr.raw
