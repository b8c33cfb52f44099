"""BPF type information (BTF): the offset of a struct's member in another program's object.

The format (linux/btf.h) is a header, type records of varying length, and strings.
"""

import ctypes
import os
import struct
from collections.abc import Iterator, Mapping

from attrs import frozen

from temper_core.bpf.system_call import Command, call
from temper_core.errors import BpfError

LARGEST_BTF = 1 << 25
_MAGIC = 0xEB9F
_HEADER = struct.Struct("<HBBIIIII")
_TYPE = struct.Struct("<III")
_MEMBER = struct.Struct("<III")
_INFO = struct.Struct("<QIIQIIQ8x")
_INFO_REQUEST = struct.Struct("<IIQ")
_BY_ID = struct.Struct("<III")
_STRUCT = 4
_UNION = 5

# Bytes after a type record, by its kind: a fixed part, and a part per member, parameter or value.
_FIXED_BYTES: Mapping[int, int] = {1: 4, 3: 12, 14: 4, 17: 4}
_BYTES_EACH: Mapping[int, int] = {_STRUCT: 12, _UNION: 12, 6: 8, 13: 8, 15: 12, 19: 12}
_NEWEST_KIND = 19


@frozen
class _TypeRecord:
    name: int
    kind: int
    count: int
    has_bitfields: bool
    body: int


def member_offset(btf_id: int, struct_name: str, member: str) -> int:
    """Return the byte offset of *member* in *struct_name*, by the BTF object *btf_id*.

    Needs CAP_SYS_ADMIN. Raises ``BpfError``.
    """
    return find_member(read_btf(btf_id), struct_name, member)


def read_btf(btf_id: int) -> bytes:
    """Return the BTF that was loaded as *btf_id*. Needs CAP_SYS_ADMIN. Raises ``BpfError``."""
    action = f"cannot read the types of BPF object {btf_id}"
    fd, _ = call(Command.BTF_GET_FD_BY_ID, _BY_ID.pack(btf_id, 0, 0), action)
    try:
        size, _ = _ask(fd, 0, action)
        if size > LARGEST_BTF:
            raise BpfError(f"{action}: {size} bytes are more than {LARGEST_BTF}")
        return _ask(fd, size, action)[1]
    finally:
        os.close(fd)


def _ask(fd: int, room: int, action: str) -> tuple[int, bytes]:
    content = ctypes.create_string_buffer(room)
    address = ctypes.addressof(content) if room else 0
    facts = ctypes.create_string_buffer(_INFO.pack(address, room, 0, 0, 0, 0, 0), _INFO.size)
    attributes = _INFO_REQUEST.pack(fd, len(facts), ctypes.addressof(facts))
    call(Command.OBJ_GET_INFO_BY_FD, attributes, action)
    return _INFO.unpack(facts.raw)[1], content.raw


def find_member(btf: bytes, struct_name: str, member: str) -> int:
    """Return the byte offset of a struct's member. Raises ``BpfError`` if there is none.

    Members of unnamed inner structs are not found. Bit fields and malformed BTF raise too.
    """
    types, strings = _sections(btf)
    for record in _records(types):
        if record.kind == _STRUCT and _name(strings, record.name) == struct_name:
            for name, bits in _members(types, record):
                if _name(strings, name) == member:
                    return _whole_bytes(bits, record, f"{struct_name}.{member}")
            raise BpfError(f"struct {struct_name} has no member {member}")
    raise BpfError(f"no struct {struct_name} among the object's types")


def _sections(btf: bytes) -> tuple[bytes, bytes]:
    if len(btf) < _HEADER.size:
        raise BpfError("type information is cut short")
    magic, _, _, header, types_at, types, strings_at, strings = _HEADER.unpack_from(btf)
    if magic != _MAGIC:
        raise BpfError(f"type information begins with {magic:#x}, not {_MAGIC:#x}")
    if max(header + types_at + types, header + strings_at + strings) > len(btf):
        raise BpfError("type information is cut short")
    types_from, strings_from = header + types_at, header + strings_at
    return btf[types_from : types_from + types], btf[strings_from : strings_from + strings]


def _records(types: bytes) -> Iterator[_TypeRecord]:
    """Yield the type records. Raises ``BpfError`` for an unknown kind, whose length is unknown."""
    at = 0
    while at + _TYPE.size <= len(types):
        name, info, _ = _TYPE.unpack_from(types, at)
        kind, count = info >> 24 & 0x1F, info & 0xFFFF
        if kind > _NEWEST_KIND:
            raise BpfError(f"type information of kind {kind} is newer than this reader")
        record = _TypeRecord(name, kind, count, bool(info >> 31), at + _TYPE.size)
        at = record.body + _FIXED_BYTES.get(kind, 0) + _BYTES_EACH.get(kind, 0) * count
        if at > len(types):
            raise BpfError("type information is cut short")
        yield record


def _members(types: bytes, record: _TypeRecord) -> Iterator[tuple[int, int]]:
    for place in range(record.count):
        name, _, bits = _MEMBER.unpack_from(types, record.body + _MEMBER.size * place)
        yield name, bits


def _whole_bytes(bits: int, record: _TypeRecord, member: str) -> int:
    # With bit fields in the struct, the upper byte is the member's width in bits, 0 for no bit
    # field.
    width, offset = (bits >> 24, bits & 0xFFFFFF) if record.has_bitfields else (0, bits)
    if width or offset % 8:
        raise BpfError(f"{member} is a bit field")
    return offset // 8


def _name(strings: bytes, at: int) -> str:
    end = strings.find(b"\0", at)
    return strings[at:end].decode(errors="replace") if end >= 0 else ""
