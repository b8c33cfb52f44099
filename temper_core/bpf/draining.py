"""Removes all elements of a BPF hash map, many in one call."""

import ctypes
import errno
import struct
from collections.abc import Iterator

from temper_core.bpf.system_call import Command, attempt
from temper_core.errors import BpfError

AT_ONCE = 2_048
_BATCH = struct.Struct("<QQQQIIQQ")
_COUNT = struct.Struct("<I")
_COUNT_OFFSET = 32
_WHAT = "cannot empty a BPF map"


def drain(
    fd: int, key_size: int, value_size: int, at_once: int = AT_ONCE
) -> Iterator[tuple[bytes, bytes]]:
    """Remove the elements of a hash map. Yield packed keys and values of at most *at_once*.

    Elements added meanwhile may be missed. Raises ``BpfError``. Needs Linux 5.6.
    """
    keys = ctypes.create_string_buffer(key_size * at_once)
    values = ctypes.create_string_buffer(value_size * at_once)
    token = ctypes.c_uint32()
    address = ctypes.addressof(token)
    begin = result = 0
    while not result:
        addresses = ctypes.addressof(keys), ctypes.addressof(values)
        attributes = _BATCH.pack(begin, address, *addresses, at_once, fd, 0, 0)
        block = ctypes.create_string_buffer(attributes, len(attributes))
        result = attempt(Command.MAP_LOOKUP_AND_DELETE_BATCH, block, _WHAT)
        # ENOENT marks the last batch.
        if result not in (0, -errno.ENOENT):
            raise BpfError(_WHAT, -result)
        (count,) = _COUNT.unpack_from(block, _COUNT_OFFSET)
        if count:
            yield (
                ctypes.string_at(keys, key_size * count),
                ctypes.string_at(values, value_size * count),
            )
        begin = address
