"""BPF maps by file descriptor: elements, properties, pins. Keys and values are raw bytes."""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from temper_core.bpf.system_call import Command, buffer, call
from temper_core.errors import BpfError

_ELEMENT = struct.Struct("<IIQQQ")
_KEY_ONLY = struct.Struct("<IIQ")
_BATCH = struct.Struct("<QQQQIIQQ")
_INFO_REQUEST = struct.Struct("<IIQ")
_INFO = struct.Struct("<IIIIII16sIIQQIIII")
_PATH_AND_FD = struct.Struct("<QII")
_BY_ID = struct.Struct("<III")
STRUCT_OPS = 26
_NO_BATCH = frozenset({errno.EINVAL, 524})
"""Errors of a kernel before 5.6, or of a kind of map without batches (524 is ENOTSUPP)."""


@frozen
class MapInfo:
    """The kernel's description of a map (``struct bpf_map_info``).

    ``name`` is cut to 15 characters. ``btf_id`` is 0 for a map without type information.
    """

    id: int
    name: str
    kind: int
    key_size: int
    value_size: int
    max_entries: int
    flags: int
    btf_id: int


def update(fd: int, key: bytes, value: bytes) -> None:
    """Set an element, new or not. Raises ``BpfError``.

    E2BIG means that the map is full, ENOENT that the task of a pidfd has ended.
    """
    key_buffer, value_buffer = buffer(key), buffer(value)
    addresses = ctypes.addressof(key_buffer), ctypes.addressof(value_buffer)
    call(Command.MAP_UPDATE_ELEM, _ELEMENT.pack(fd, 0, *addresses, 0), "cannot update a BPF map")


def update_many(fd: int, elements: Sequence[tuple[bytes, bytes]]) -> None:
    """Set several elements, in one call if the kernel can. Those before a failure stay set."""
    if not elements:
        return
    keys = buffer(b"".join(key for key, _ in elements))
    values = buffer(b"".join(value for _, value in elements))
    addresses = ctypes.addressof(keys), ctypes.addressof(values)
    attributes = _BATCH.pack(0, 0, *addresses, len(elements), fd, 0, 0)
    try:
        call(Command.MAP_UPDATE_BATCH, attributes, "cannot update a BPF map")
    except BpfError as error:
        if error.errno not in _NO_BATCH:
            raise
        for key, value in elements:
            update(fd, key, value)


def delete(fd: int, key: bytes) -> bool:
    """Remove an element. Return whether there was one. Raises ``BpfError``."""
    key_buffer = buffer(key)
    attributes = _KEY_ONLY.pack(fd, 0, ctypes.addressof(key_buffer))
    try:
        call(Command.MAP_DELETE_ELEM, attributes, "cannot delete from a BPF map")
    except BpfError as error:
        if error.errno == errno.ENOENT:
            return False
        raise
    return True


def lookup(fd: int, key: bytes, value_size: int) -> bytes | None:
    """Read an element, None if there is none. Raises ``BpfError``.

    *value_size* must be the map's own. A per-CPU map writes more bytes and must not be passed.
    """
    key_buffer, value = buffer(key), ctypes.create_string_buffer(value_size)
    addresses = ctypes.addressof(key_buffer), ctypes.addressof(value)
    try:
        call(Command.MAP_LOOKUP_ELEM, _ELEMENT.pack(fd, 0, *addresses, 0), "cannot read a BPF map")
    except BpfError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    return value.raw


def keys(fd: int, key_size: int) -> Iterator[bytes]:
    """Yield the keys. The last key may be deleted. Other changes may repeat or skip keys."""
    key = _key_after(fd, None, key_size)
    while key is not None:
        # Read before this key is yielded: after a deleted key the kernel begins anew.
        following = _key_after(fd, key, key_size)
        yield key
        key = following


def _key_after(fd: int, key: bytes | None, key_size: int) -> bytes | None:
    key_buffer, following = buffer(key or b""), ctypes.create_string_buffer(key_size)
    start = ctypes.addressof(key_buffer) if key is not None else 0
    attributes = _ELEMENT.pack(fd, 0, start, ctypes.addressof(following), 0)[:24]
    try:
        call(Command.MAP_GET_NEXT_KEY, attributes, "cannot walk a BPF map")
    except BpfError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    return following.raw


def info(fd: int) -> MapInfo:
    """Return the kernel's description of map *fd*. Raises ``BpfError``."""
    facts = ctypes.create_string_buffer(_INFO.size)
    attributes = _INFO_REQUEST.pack(fd, len(facts), ctypes.addressof(facts))
    call(Command.OBJ_GET_INFO_BY_FD, attributes, "cannot read the properties of a BPF map")
    kind, map_id, key_size, value_size, max_entries, flags, name, *others = _INFO.unpack(facts.raw)
    return MapInfo(
        id=map_id,
        name=name.split(b"\0", 1)[0].decode(errors="replace"),
        kind=kind,
        key_size=key_size,
        value_size=value_size,
        max_entries=max_entries,
        flags=flags,
        btf_id=others[4],
    )


def pin(fd: int, path: str | os.PathLike[str]) -> None:
    """Pin a map in a bpffs, so that other processes can open it. EEXIST if the path exists."""
    name = buffer(os.fsencode(path) + b"\0")
    attributes = _PATH_AND_FD.pack(ctypes.addressof(name), fd, 0)
    call(Command.OBJ_PIN, attributes, f"cannot pin a BPF map at {os.fspath(path)}")


def open_pinned(path: str | os.PathLike[str]) -> int:
    """Open the map pinned at *path*. The caller closes the descriptor."""
    name = buffer(os.fsencode(path) + b"\0")
    attributes = _PATH_AND_FD.pack(ctypes.addressof(name), 0, 0)
    return call(Command.OBJ_GET, attributes, f"cannot open the BPF map {os.fspath(path)}")[0]


def open_by_id(map_id: int) -> int:
    """Open any map of this machine. Needs CAP_SYS_ADMIN. The caller closes the descriptor."""
    attributes = _BY_ID.pack(map_id, 0, 0)
    return call(Command.MAP_GET_FD_BY_ID, attributes, f"cannot open BPF map {map_id}")[0]


def all_ids() -> Iterator[int]:
    """Yield the ids of all maps of this machine. Needs CAP_SYS_ADMIN. Raises ``BpfError``."""
    map_id: int | None = _id_after(0)
    while map_id is not None:
        yield map_id
        map_id = _id_after(map_id)


def _id_after(map_id: int) -> int | None:
    try:
        _, block = call(
            Command.MAP_GET_NEXT_ID, _BY_ID.pack(map_id, 0, 0), "cannot list the BPF maps"
        )
    except BpfError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    following: int = _BY_ID.unpack(block)[1]
    return following


def struct_ops_ids() -> frozenset[int]:
    """Return the ids of the maps of which BPF schedulers are made, and other kernel interfaces.

    The map of a scheduler exists from the beginning of its load (``BPF_MAP_TYPE_STRUCT_OPS`` of
    linux/bpf.h). Needs CAP_SYS_ADMIN. Raises ``BpfError``.
    """
    return frozenset(map_id for map_id in all_ids() if _kind_of(map_id) == STRUCT_OPS)


def _kind_of(map_id: int) -> int | None:
    """Return the kind of a map, None if it is gone."""
    try:
        fd = open_by_id(map_id)
    except BpfError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    try:
        return info(fd).kind
    finally:
        os.close(fd)


def map_ids_of(pid: int, proc_root: str | os.PathLike[str] = "/proc") -> tuple[int, ...]:
    """Return the ids of a process's open maps. Empty if it has ended or access is denied."""
    ids: set[int] = set()
    try:
        descriptors = list(Path(proc_root, str(pid), "fdinfo").iterdir())
    except OSError:
        return ()
    for descriptor in descriptors:
        ids.update(_map_ids(descriptor))
    return tuple(sorted(ids))


def _map_ids(descriptor: Path) -> Iterator[int]:
    try:
        lines = descriptor.read_text(errors="replace").split("\n")
    except OSError:
        # Closed since the listing.
        return
    for line in lines:
        key, _, value = line.partition(":")
        if key == "map_id" and value.strip().isdecimal():
            yield int(value)
