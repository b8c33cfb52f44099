"""Look-up of a type by name in the kernel's BTF, without parsing it all.

A kernel has 150,000 types, and a walk over them takes a tenth of a second. So the offset of the
name is searched for in the raw records. linux/btf.h defines the format.
"""

import struct
from collections.abc import Iterator

from attrs import field, frozen

MAGIC = 0xEB9F
HEADER = struct.Struct("<HBBIIIII")
WORDS = struct.Struct("<II")
ENUM, DECLARATION_TAG, ENUM64 = 6, 17, 19
NEWEST_KIND = 19


@frozen
class KernelTypes:
    """The type records and the string table of a BTF file."""

    types: bytes = field(repr=False)
    names: bytes = field(repr=False)

    @classmethod
    def read(cls, content: bytes) -> "KernelTypes | None":
        """Parse *content*. Return None if it is not BTF of this machine's byte order."""
        if len(content) < HEADER.size:
            return None
        magic, _, _, header, types_at, types, names_at, names = HEADER.unpack_from(content)
        if magic != MAGIC or header + names_at + names > len(content):
            return None
        first, last = header + types_at, header + names_at
        return cls(content[first : first + types], content[last : last + names])

    def has(self, name: str, kind: int) -> bool:
        """Whether a type of *kind* (BTF_KIND_*) is called *name*."""
        return kind in self._kinds(name)

    def _kinds(self, name: str) -> Iterator[int]:
        """Yield the kinds of possible records called *name*.

        The bytes of the offset may occur elsewhere too. Most of these are followed by no valid
        kind.
        """
        offset = self.names.find(b"\0" + name.encode() + b"\0") + 1
        pattern = offset.to_bytes(4, "little")
        at = self.types.find(pattern) if offset else -1
        while 0 <= at <= len(self.types) - WORDS.size:
            kind = WORDS.unpack_from(self.types, at)[1] >> 24 & 0x1F
            if at % 4 == 0 and 0 < kind <= NEWEST_KIND:
                yield kind
            at = self.types.find(pattern, at + 1)
