"""BPF by the system call alone: what the kernel holds, whoever made it, and the map of hints."""

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Self

BPF = 321  # the system call's number on x86-64
MAP_CREATE, MAP_LOOKUP, MAP_UPDATE = 0, 1, 2
OBJ_PIN, OBJ_GET = 6, 7
PROG_GET_NEXT_ID, MAP_GET_NEXT_ID = 11, 12
PROG_GET_FD_BY_ID, MAP_GET_FD_BY_ID = 13, 14
OBJ_GET_INFO_BY_FD = 15
# where the 16 bytes of the name are in bpf_prog_info and bpf_map_info (linux/bpf.h)
PROG_NAME, MAP_NAME = 64, 24
INFO_BYTES = 256
HASH = 1
# pidfd_open(2): any thread, not only a process's first
PIDFD_THREAD = os.O_EXCL
HINT = struct.Struct("=Q24x")
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


class Hints:
    """The map of hints behind *pin*, as anybody who may open it sees and changes it."""

    def __init__(self, pin: Path) -> None:
        self._path = ctypes.create_string_buffer(bytes(pin))
        request = struct.pack("=QII", ctypes.addressof(self._path), 0, 0)
        self._map = _checked(OBJ_GET, request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._map)

    def of(self, tid: int) -> int:
        """Return a thread's hint; raise OSError where it has none."""
        value = ctypes.create_string_buffer(HINT.size)
        self._element(MAP_LOOKUP, tid, value)
        return int(HINT.unpack(value.raw)[0])

    def give(self, tid: int, hint: int) -> None:
        """Change a thread's hint."""
        self._element(MAP_UPDATE, tid, ctypes.create_string_buffer(HINT.pack(hint), HINT.size))

    def _element(self, command: int, tid: int, value: "ctypes.Array[ctypes.c_char]") -> None:
        pidfd = os.pidfd_open(tid, PIDFD_THREAD)
        key = ctypes.c_int(pidfd)
        addresses = ctypes.addressof(key), ctypes.addressof(value)
        try:
            _checked(command, struct.pack("=I4xQQQ", self._map, *addresses, 0))
        finally:
            os.close(pidfd)


def pin_another_map(pin: Path) -> None:
    """Pin a map that has nothing to do with hints."""
    another = _checked(MAP_CREATE, struct.pack("=IIIII", HASH, 4, 4, 1, 0))
    path = ctypes.create_string_buffer(bytes(pin))
    _checked(OBJ_PIN, struct.pack("=QII", ctypes.addressof(path), another, 0))
    os.close(another)


def _checked(command: int, attributes: bytes) -> int:
    result, _ = _bpf(command, attributes)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
