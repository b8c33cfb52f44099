import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.bpf.object_file import ObjectFile, parse
from temper_core.errors import BpfError

MAP = {
    "name": "seen",
    "kind": 1,
    "key_size": 4,
    "value_size": 8,
    "max_entries": 4,
    "flags": 0,
    "has_content": False,
}
PROGRAM = {"name": "count", "section": "syscall"}


def packed(description, data=b"data", instructions=bytes(8), *, magic=b"TBPF"):
    text = description if isinstance(description, bytes) else json.dumps(description).encode()
    lengths = len(text), len(data), len(instructions)
    return struct.pack("<4sIII", magic, *lengths) + text + data + instructions


def described(**changes):
    return {"maps": [MAP], "programs": [PROGRAM], **changes}


def test_an_object_is_taken_apart():
    file = parse(packed(described(built_with="a compiler")))

    assert [(each.name, each.value_size) for each in file.maps] == [("seen", 8)]
    assert [(each.name, each.section) for each in file.programs] == [("count", "syscall")]
    assert (file.data, file.instructions) == (b"data", bytes(8))


@pytest.mark.parametrize("name", ["tally", "unknown_field", "unknown_function"])
def test_what_the_build_makes_can_be_read(content_of, name):
    assert parse(content_of(name)).programs


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "0 bytes are too few for a header"),
        (packed(described(), magic=b"\x7fELF"), r"begins with b'\x7fELF', not b'TBPF'"),
        (packed(described())[:-1], "its lengths do not add up to the file's"),
        (packed(described()) + b"x", "its lengths do not add up to the file's"),
        (packed(described(), data=b""), "its data must be 1 to 16777216 bytes, not 0"),
        (packed(described(), instructions=b""), "0 bytes of instructions are not a program"),
        (packed(described(), instructions=bytes(9)), "9 bytes of instructions are not a program"),
        (packed(b" " * 65_537), "its description is longer than 65536 bytes"),
        (packed(b"{"), "its description is not JSON: "),
        (packed(b"[" * 60_000), "its description is not JSON: "),
        (packed(b"\xff\xff"), "its description is not JSON: "),
        (packed([]), "its description is not an object"),
        (packed({}), "maps: must be a list of at most 64"),
        (packed(described(maps={})), "maps: must be a list of at most 64"),
        (packed(described(maps=[MAP] * 65)), "maps: must be a list of at most 64"),
        (packed(described(maps=[1])), "maps: must hold objects"),
        (packed(described(maps=[MAP, MAP])), "maps: a name occurs twice"),
        (packed(described(maps=[{**MAP, "name": ""}])), "name must be text of 1 to 128"),
        (packed(described(maps=[{**MAP, "kind": True}])), "kind must be a whole number"),
        (packed(described(maps=[{**MAP, "flags": -1}])), "flags must be a whole number"),
        (packed(described(maps=[{**MAP, "max_entries": 1 << 32}])), "max_entries must be a whole"),
        (packed(described(maps=[{**MAP, "has_content": 1}])), "maps: has_content must be true or"),
        (packed(described(programs=[PROGRAM] * 33)), "programs: must be a list of at most 32"),
        (packed(described(programs=[{"name": "x"}])), "section must be text of 1 to 128"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(content, complaint):
    with pytest.raises(BpfError) as raised:
        parse(content)

    assert str(raised.value).startswith(f"not a usable BPF object: {complaint}")
    assert "\n" not in str(raised.value)


def parsed_or_refused(content):
    try:
        return parse(content)
    except BpfError:
        return None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(content):
    assert parsed_or_refused(content) is None


@given(st.tuples(*[st.integers(0, 0xFFFF_FFFF)] * 3), st.binary(max_size=100))
def test_no_lengths_raise_anything_else(lengths, rest):
    parsed_or_refused(struct.pack("<4sIII", b"TBPF", *lengths) + rest)


@given(st.binary(max_size=300))
def test_no_description_raises_anything_else(text):
    parsed_or_refused(packed(text))


@given(st.dictionaries(st.sampled_from([*MAP, "section"]), json_values), json_values)
def test_no_values_in_a_description_raise_anything_else(changes, other):
    for description in (
        described(maps=[{**MAP, **changes}], programs=[{**PROGRAM, **changes}]),
        described(maps=[other], programs=other),
        other,
    ):
        file = parsed_or_refused(packed(description))

        assert file is None or isinstance(file, ObjectFile)


@given(st.data())
def test_a_real_object_with_a_byte_changed_is_read_or_refused(content_of_tally, data):
    place = data.draw(st.integers(0, 1_000))
    value = data.draw(st.integers(0, 255))
    changed = bytearray(content_of_tally)
    changed[place] = value

    parsed_or_refused(bytes(changed))


@pytest.fixture(scope="module")
def content_of_tally(request):
    return (request.path.parent / "objects" / "tally.bpfl").read_bytes()
