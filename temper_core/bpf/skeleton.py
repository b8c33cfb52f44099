"""Loads a ``.bpfl`` by its own loading program, as libbpf's light skeletons do (skel_internal.h).

The kernel runs that program once; it makes the maps, relocates the programs against the running
kernel's types and loads them. No compiler, no library and no headers are needed.
"""

import ctypes
import errno
import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from temper_core.bpf.object_file import ObjectFile, parse
from temper_core.bpf.system_call import Command, buffer, call
from temper_core.errors import BpfError

_ARRAY_MAP = 2
_SYSCALL_PROGRAM = 31
_SLEEPABLE = 1 << 4
_LICENCE = b"Dual BSD/GPL\0"

# struct bpf_loader_ctx, then a struct bpf_map_desc per map, then a descriptor per program.
_CONTEXT = struct.Struct("<IIIIQ")
_MAP_IN_CONTEXT = struct.Struct("<iIQ")
_DESCRIPTOR = struct.Struct("<i")

# union bpf_attr, as far as each command reads it.
_MAP_CREATE = struct.Struct("<IIIIIII16s")
_MAP_UPDATE = struct.Struct("<IIQQQ")
_PROG_LOAD = struct.Struct("<IIQQIIQII16s")
_PROG_LOAD_BYTES = 128
_FD_ARRAY = struct.Struct("<Q")
_FD_ARRAY_OFFSET = 120
_TEST_RUN = struct.Struct("<IIIIQQIIIIQQ16x")
_RETURN_VALUE = struct.Struct("<i")
_RETURN_VALUE_OFFSET = 4
_RAW_TRACEPOINT = struct.Struct("<QII")

_LOG_BYTES = 1 << 20
_LOG_LINES = 12
_TRIES = 5


class Skeleton:
    """A loaded BPF object: its maps and programs by name, as file descriptors.

    Everything goes when it is closed, or with this process; only pinned maps stay.
    """

    def __init__(self, file: ObjectFile, descriptors: Sequence[int]) -> None:
        names = [each.name for each in file.maps]
        self.maps: Mapping[str, int] = dict(zip(names, descriptors, strict=False))
        self.programs: Mapping[str, int] = dict(
            zip((each.name for each in file.programs), descriptors[len(names) :], strict=True)
        )
        self._descriptors = list(descriptors)

    @classmethod
    def load(
        cls,
        data: bytes,
        *,
        max_entries: Mapping[str, int] | None = None,
        initial: Mapping[str, bytes] | None = None,
    ) -> Self:
        """Load the content of a ``.bpfl``; raises ``BpfError``.

        *max_entries* sizes maps by name; *initial* is the content of global variables and
        constants by the name of their map (``probe.rodata``), whole.
        """
        file = parse(data)
        sizes = _checked_sizes(file, max_entries or {})
        contents = _checked_contents(file, initial or {})
        for attempt in range(_TRIES):
            try:
                return cls(file, _load(file, sizes, contents))
            except BpfError as error:
                # A signal that arrives while the verifier runs ends it.
                if error.errno != errno.EAGAIN or attempt == _TRIES - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def run(self, program: str) -> int:
        """Run a program of section ``syscall`` once, and return what it returned."""
        attributes = bytearray(_TEST_RUN.size)
        struct.pack_into("<I", attributes, 0, self._program(program))
        _, answer = call(Command.PROG_TEST_RUN, attributes, f"cannot run BPF program {program!r}")
        return _returned(answer)

    def attach(self, program: str) -> None:
        """Attach a program to the tracepoint its section names (``tp_btf/…``), until closed."""
        attributes = _RAW_TRACEPOINT.pack(0, self._program(program), 0)
        what = f"cannot attach BPF program {program!r}"
        link, _ = call(Command.RAW_TRACEPOINT_OPEN, attributes, what)
        self._descriptors.append(link)

    def memory(self, map_name: str, size: int) -> mmap.mmap:
        """Map the first *size* bytes of an array made with ``BPF_F_MMAPABLE``, to read and write.

        It stays valid after the skeleton is closed.
        """
        if map_name not in self.maps:
            raise BpfError(f"no map {map_name!r} among {', '.join(self.maps)}")
        try:
            return mmap.mmap(self.maps[map_name], size)
        except (OSError, ValueError) as error:
            reason = getattr(error, "errno", None) or errno.EINVAL
            raise BpfError(f"cannot map {size} bytes of {map_name!r}", reason) from error

    def close(self) -> None:
        """Detach and let go of everything; a second time does nothing."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _program(self, name: str) -> int:
        if not self._descriptors:
            raise BpfError(f"cannot use BPF program {name!r}: the object is closed")
        if name not in self.programs:
            raise BpfError(f"no program {name!r} among {', '.join(self.programs)}")
        return self.programs[name]


def _checked_sizes(file: ObjectFile, sizes: Mapping[str, int]) -> list[int]:
    _check_names(file, sizes)
    for name, size in sizes.items():
        if not 0 < size < 1 << 32:
            raise BpfError(f"map {name!r}: max_entries must be 1 to 2^32 - 1, not {size}")
    return [sizes.get(each.name, 0) for each in file.maps]


def _checked_contents(file: ObjectFile, contents: Mapping[str, bytes]) -> list[bytes]:
    _check_names(file, contents)
    for each in file.maps:
        given = contents.get(each.name)
        if given is None:
            continue
        if not each.has_content:
            raise BpfError(f"map {each.name!r} holds no global variables; update it after loading")
        if len(given) != each.value_size:
            raise BpfError(f"map {each.name!r} takes {each.value_size} bytes, not {len(given)}")
    return [contents.get(each.name, b"") for each in file.maps]


def _check_names(file: ObjectFile, named: Mapping[str, object]) -> None:
    known = {each.name for each in file.maps}
    if unknown := sorted(set(named) - known):
        raise BpfError(f"no map {unknown[0]!r} among {', '.join(sorted(known))}")


def _load(file: ObjectFile, sizes: Sequence[int], contents: Sequence[bytes]) -> list[int]:
    """Run the loading program; if it fails once more with the verifier's log, to say why."""
    with ExitStack() as opened:
        data = _data_map(file.data)
        opened.callback(os.close, data)
        loader = _loading_program(file.instructions, data)
        opened.callback(os.close, loader)
        try:
            return _run_loader(file, loader, sizes, contents, None)
        except BpfError as error:
            if error.errno == errno.EAGAIN:
                raise
        return _run_loader(file, loader, sizes, contents, ctypes.create_string_buffer(_LOG_BYTES))


def _data_map(data: bytes) -> int:
    attributes = _MAP_CREATE.pack(_ARRAY_MAP, 4, len(data), 1, 0, 0, 0, b"__loader.map")
    fd, _ = call(Command.MAP_CREATE, attributes, "cannot create a BPF map")
    key, value = buffer(bytes(4)), buffer(data)
    attributes = _MAP_UPDATE.pack(fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0)
    try:
        call(Command.MAP_UPDATE_ELEM, attributes, "cannot fill a BPF map")
    except BpfError:
        os.close(fd)
        raise
    return fd


def _loading_program(instructions: bytes, data_map: int) -> int:
    code, licence = buffer(instructions), buffer(_LICENCE)
    descriptors = (ctypes.c_int * 1)(data_map)
    attributes = bytearray(_PROG_LOAD_BYTES)
    _PROG_LOAD.pack_into(
        attributes,
        0,
        _SYSCALL_PROGRAM,
        len(instructions) // 8,
        ctypes.addressof(code),
        ctypes.addressof(licence),
        0,
        0,
        0,
        0,
        _SLEEPABLE,
        b"__loader.prog",
    )
    _FD_ARRAY.pack_into(attributes, _FD_ARRAY_OFFSET, ctypes.addressof(descriptors))
    return call(Command.PROG_LOAD, attributes, "cannot load a BPF program")[0]


def _run_loader(
    file: ObjectFile,
    loader: int,
    sizes: Sequence[int],
    contents: Sequence[bytes],
    log: ctypes.Array[ctypes.c_char] | None,
) -> list[int]:
    values = [buffer(each) for each in contents]
    context = _loader_context(file, sizes, values, log)
    attributes = bytearray(_TEST_RUN.size)
    _TEST_RUN.pack_into(
        attributes, 0, loader, 0, 0, 0, 0, 0, 0, 0, len(context), 0, ctypes.addressof(context), 0
    )
    what = "cannot load the BPF object"
    _, answer = call(Command.PROG_TEST_RUN, attributes, what)
    if (result := _returned(answer)) < 0:
        raise BpfError(what, -result, _last_lines(log))
    return _descriptors(file, context.raw)


def _loader_context(
    file: ObjectFile,
    sizes: Sequence[int],
    values: Sequence[ctypes.Array[ctypes.c_char]],
    log: ctypes.Array[ctypes.c_char] | None,
) -> ctypes.Array[ctypes.c_char]:
    used = _CONTEXT.size + _MAP_IN_CONTEXT.size * len(file.maps)
    used += _DESCRIPTOR.size * len(file.programs)
    context = ctypes.create_string_buffer(used + -used % 8)
    level, room, where = (1, len(log), ctypes.addressof(log)) if log else (0, 0, 0)
    _CONTEXT.pack_into(context, 0, len(context), 0, level, room, where)
    for place, (size, value) in enumerate(zip(sizes, values, strict=True)):
        at = _CONTEXT.size + _MAP_IN_CONTEXT.size * place
        _MAP_IN_CONTEXT.pack_into(context, at, 0, size, ctypes.addressof(value) if value else 0)
    return context


def _descriptors(file: ObjectFile, context: bytes) -> list[int]:
    after_maps = _CONTEXT.size + _MAP_IN_CONTEXT.size * len(file.maps)
    places = list(range(_CONTEXT.size, after_maps, _MAP_IN_CONTEXT.size))
    places += [after_maps + _DESCRIPTOR.size * place for place in range(len(file.programs))]
    return [_DESCRIPTOR.unpack_from(context, place)[0] for place in places]


def _returned(answer: bytes) -> int:
    value: int = _RETURN_VALUE.unpack_from(answer, _RETURN_VALUE_OFFSET)[0]
    return value


def _last_lines(log: ctypes.Array[ctypes.c_char] | None) -> str:
    text = log.value.decode(errors="replace") if log else ""
    return "\n".join(text.splitlines()[-_LOG_LINES:])
