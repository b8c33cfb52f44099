# noqa: INP001 - a script that build-bpf runs by its path, with any python3
"""light_skeleton.py OBJECT.o RESULT.bpfl BUILT-WITH: from a compiled BPF object to what loads it.

Needs libbpf.so.1 and no rights: nothing is loaded. Exit 2 where libbpf refuses the object; it says
why on stderr. Without arguments it prints libbpf's version.
"""

import ctypes
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

try:
    LIBBPF = ctypes.CDLL("libbpf.so.1", use_errno=True)
except OSError as error:
    sys.stderr.write(f"light_skeleton.py: {error}; on Debian install libbpf-dev\n")
    sys.exit(3)

POINTER = ctypes.c_void_p


class LoaderOptions(ctypes.Structure):
    """``struct gen_loader_opts``: libbpf fills in all but the size."""

    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("data", POINTER),
        ("insns", POINTER),
        ("data_sz", ctypes.c_uint32),
        ("insns_sz", ctypes.c_uint32),
    )


def ask(name: str, result: type, *arguments: object) -> object:
    """Call a function of libbpf; its arguments are pointers, or instances of ctypes' types."""
    function = getattr(LIBBPF, name)
    function.restype = result
    return function(*arguments)


def each(what: str, opened: POINTER) -> Iterator[POINTER]:
    """Walk the maps or programs of an object in libbpf's own order, which the loader keeps."""
    found = ask(f"bpf_object__next_{what}", POINTER, opened, POINTER(None))
    while found:
        yield POINTER(found)
        found = ask(f"bpf_object__next_{what}", POINTER, opened, POINTER(found))


def describe_map(found: POINTER) -> dict[str, object]:
    """Say what a map is; only one with global variables has an initial value."""
    numbers = {"kind": "type", "key_size": "key_size", "value_size": "value_size"}
    numbers |= {"max_entries": "max_entries", "flags": "map_flags"}
    size = ctypes.c_size_t()
    content = ask("bpf_map__initial_value", POINTER, found, ctypes.byref(size))
    return {
        "name": ask("bpf_map__name", ctypes.c_char_p, found).decode(),
        **{key: ask(f"bpf_map__{of}", ctypes.c_uint32, found) for key, of in numbers.items()},
        "has_content": bool(content),
    }


def describe_program(found: POINTER) -> dict[str, object]:
    """Say what a program is called and where it belongs."""
    return {
        "name": ask("bpf_program__name", ctypes.c_char_p, found).decode(),
        "section": ask("bpf_program__section_name", ctypes.c_char_p, found).decode(),
    }


def main(source: str, result: str, built_with: str) -> int:
    """Write RESULT; see the module."""
    handle = ask("bpf_object__open_file", POINTER, source.encode(), POINTER(None))
    if not handle:
        return 2
    opened = POINTER(handle)
    options = LoaderOptions(sz=ctypes.sizeof(LoaderOptions))
    if ask("bpf_object__gen_loader", ctypes.c_int, opened, ctypes.byref(options)):
        return 2
    description = {
        "built_with": built_with,
        "maps": [describe_map(found) for found in each("map", opened)],
        "programs": [describe_program(found) for found in each("program", opened)],
    }
    if ask("bpf_object__load", ctypes.c_int, opened):
        return 2
    text = json.dumps(description).encode()
    data = ctypes.string_at(options.data, options.data_sz)
    instructions = ctypes.string_at(options.insns, options.insns_sz)
    lengths = len(text), len(data), len(instructions)
    Path(result).write_bytes(struct.pack("<4sIII", b"TBPF", *lengths) + text + data + instructions)
    return 0


def version() -> int:
    """Print libbpf's version."""
    found = ask("libbpf_version_string", ctypes.c_char_p).decode()
    sys.stdout.write(found.removeprefix("v") + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if sys.argv[1:] else version())
