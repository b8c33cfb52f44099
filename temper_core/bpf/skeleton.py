"""Loads a ``.bpfl`` by its own loading program, as libbpf's light skeletons do (skel_internal.h).

The kernel runs that program once. It creates the maps, relocates the programs against the running
kernel's types and loads them. It needs no compiler, library or headers.
"""

import ctypes
import errno
import mmap
import os
import signal
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from temper_core.bpf.draining import drain
from temper_core.bpf.maps import update
from temper_core.bpf.object_file import ObjectFile, parse
from temper_core.bpf.system_call import Buffer, Command, buffer, call
from temper_core.errors import BpfError

_ARRAY_MAP = 2
_SYSCALL_PROGRAM = 31
_SLEEPABLE = 1 << 4
_LICENCE = b"Dual BSD/GPL\0"

# struct bpf_loader_ctx, then a struct bpf_map_desc per map, then a descriptor per program.
_CONTEXT = struct.Struct("<IIIIQ")
_MAP_IN_CONTEXT = struct.Struct("<iIQ")
_DESCRIPTOR = struct.Struct("<i")

# The parts of union bpf_attr that each command reads.
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

_CANNOT_LOAD = "cannot load the BPF object"
_LOG_BYTES = 1 << 23
_LOG_LINES = 12
_TRIES = 5


class Skeleton:
    """A loaded BPF object: its maps and programs by name, as file descriptors.

    The kernel removes everything but pinned maps when it is closed or this process ends.
    """

    def __init__(self, file: ObjectFile, descriptors: Sequence[int]) -> None:
        names = [row.name for row in file.maps]
        self.maps: Mapping[str, int] = dict(zip(names, descriptors, strict=False))
        self.programs: Mapping[str, int] = dict(
            zip((row.name for row in file.programs), descriptors[len(names) :], strict=True)
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
        """Load the content of a ``.bpfl``. Raises ``BpfError``.

        *max_entries* sizes maps by name. *initial* is the whole content of global variables and
        constants by the name of their map (``probe.rodata``).
        """
        file = parse(data)
        sizes = _checked_sizes(file, max_entries or {})
        contents = _checked_contents(file, initial or {})
        return cls(file, _load(file, sizes, contents))

    def run(self, program: str) -> int:
        """Run a program of section ``syscall`` once. Return its result."""
        attributes = bytearray(_TEST_RUN.size)
        struct.pack_into("<I", attributes, 0, self._program(program))
        _, answer = call(Command.PROG_TEST_RUN, attributes, f"cannot run BPF program {program!r}")
        return _returned(answer)

    def attach(self, program: str) -> None:
        """Attach a program to the tracepoint of its section (``tp_btf/…``) until ``close``."""
        self._descriptors.append(self.link(program))

    def link(self, program: str) -> int:
        """Attach a program as ``attach`` does, until the caller closes the returned descriptor."""
        attributes = _RAW_TRACEPOINT.pack(0, self._program(program), 0)
        action = f"cannot attach BPF program {program!r}"
        return call(Command.RAW_TRACEPOINT_OPEN, attributes, action)[0]

    def memory(self, map_name: str, size: int) -> mmap.mmap:
        """Map the first *size* bytes of an array made with ``BPF_F_MMAPABLE``, to read and write.

        The mapping stays valid after the skeleton is closed.
        """
        fd = _named(self.maps, map_name, "map")
        try:
            return mmap.mmap(fd, size)
        except (OSError, ValueError) as error:
            reason = getattr(error, "errno", None) or errno.EINVAL
            raise BpfError(f"cannot map {size} bytes of {map_name!r}", reason) from error

    def update(self, map_name: str, key: bytes, value: bytes) -> None:
        """Set an element of a map, new or not, as ``maps.update`` does."""
        update(_named(self.maps, map_name, "map"), key, value)

    def drain(self, map_name: str, key_size: int, value_size: int) -> Iterator[tuple[bytes, bytes]]:
        """Remove all elements of a hash map in packed batches, as ``draining.drain`` does."""
        return drain(_named(self.maps, map_name, "map"), key_size, value_size)

    def close(self) -> None:
        """Detach the programs and close all descriptors. A second call does nothing."""
        self.maps, self.programs = {}, {}
        while self._descriptors:
            os.close(self._descriptors.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _program(self, name: str) -> int:
        return _named(self.programs, name, "program")


def _checked_sizes(file: ObjectFile, sizes: Mapping[str, int]) -> list[int]:
    _check_names(file, sizes)
    for name, size in sizes.items():
        if not 0 < size < 1 << 32:
            raise BpfError(f"map {name!r}: max_entries must be 1 to 2^32 - 1, not {size}")
    return [sizes.get(row.name, 0) for row in file.maps]


def _checked_contents(file: ObjectFile, contents: Mapping[str, bytes]) -> list[bytes]:
    _check_names(file, contents)
    for row in file.maps:
        content = contents.get(row.name)
        if content is None:
            continue
        if not row.has_content:
            raise BpfError(f"map {row.name!r} holds no global variables; update it after loading")
        if len(content) != row.value_size:
            raise BpfError(f"map {row.name!r} takes {row.value_size} bytes, not {len(content)}")
    return [contents.get(row.name, b"") for row in file.maps]


def _check_names(file: ObjectFile, names: Iterable[str]) -> None:
    names_in_file = {row.name: 0 for row in file.maps}
    for name in names:
        _named(names_in_file, name, "map")


def _named(descriptors: Mapping[str, int], name: str, kind: str) -> int:
    if name not in descriptors:
        raise BpfError(f"no {kind} {name!r} among those loaded: {', '.join(descriptors) or 'none'}")
    return descriptors[name]


def _load(file: ObjectFile, sizes: Sequence[int], contents: Sequence[bytes]) -> list[int]:
    with ExitStack() as opened:
        opened.enter_context(_undisturbed())
        data = _data_map(file.data)
        opened.callback(os.close, data)
        loader = _loading_program(file.instructions, data)
        opened.callback(os.close, loader)
        return _run_patiently(lambda log: _run_loader(file, loader, sizes, contents, log))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Block this thread's signals: a signal during verification aborts the load."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_patiently(load: Callable[[Buffer | None], list[int]], tries: int = _TRIES) -> list[int]:
    try:
        return load(None)
    except BpfError as error:
        # Some signals cannot be blocked: those of a freezer, a debugger, SIGSTOP.
        if error.errno == errno.EAGAIN and tries > 1:
            return _run_patiently(load, tries - 1)
        if not error.errno:
            raise
        raise BpfError(_CANNOT_LOAD, error.errno, _words_of_verifier(load)) from error


def _words_of_verifier(load: Callable[[Buffer | None], list[int]]) -> str:
    log = ctypes.create_string_buffer(_LOG_BYTES)
    with suppress(BpfError):
        for fd in load(log):
            os.close(fd)
    return "\n".join(log.value.decode(errors="replace").splitlines()[-_LOG_LINES:])


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
    log: Buffer | None,
) -> list[int]:
    values = [buffer(content) for content in contents]
    context = _loader_context(file, sizes, values, log)
    attributes = bytearray(_TEST_RUN.size)
    _TEST_RUN.pack_into(
        attributes, 0, loader, 0, 0, 0, 0, 0, 0, 0, len(context), 0, ctypes.addressof(context), 0
    )
    _, answer = call(Command.PROG_TEST_RUN, attributes, _CANNOT_LOAD)
    if (result := _returned(answer)) < 0:
        raise BpfError(_CANNOT_LOAD, -result)
    return _descriptors(file, context.raw)


def _loader_context(
    file: ObjectFile,
    sizes: Sequence[int],
    values: Sequence[Buffer],
    log: Buffer | None,
) -> Buffer:
    used = _CONTEXT.size + _MAP_IN_CONTEXT.size * len(file.maps)
    used += _DESCRIPTOR.size * len(file.programs)
    context = ctypes.create_string_buffer(used + -used % 8)
    level, room, address = (1, len(log), ctypes.addressof(log)) if log else (0, 0, 0)
    _CONTEXT.pack_into(context, 0, len(context), 0, level, room, address)
    for place, (size, value) in enumerate(zip(sizes, values, strict=True)):
        at = _CONTEXT.size + _MAP_IN_CONTEXT.size * place
        _MAP_IN_CONTEXT.pack_into(context, at, 0, size, ctypes.addressof(value) if value else 0)
    return context


def _descriptors(file: ObjectFile, context: bytes) -> list[int]:
    after_maps = _CONTEXT.size + _MAP_IN_CONTEXT.size * len(file.maps)
    places = list(range(_CONTEXT.size, after_maps, _MAP_IN_CONTEXT.size))
    places += [after_maps + _DESCRIPTOR.size * place for place in range(len(file.programs))]
    descriptors = [_DESCRIPTOR.unpack_from(context, place)[0] for place in places]
    if min(descriptors, default=1) > 0:
        return descriptors
    # The loading program has fewer maps or programs than the description.
    for fd in descriptors:
        if fd > 0:
            os.close(fd)
    raise BpfError("not a usable BPF object: its description and its program do not agree")


def _returned(answer: bytes) -> int:
    value: int = _RETURN_VALUE.unpack_from(answer, _RETURN_VALUE_OFFSET)[0]
    return value
