import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.bpf import maps
from temper_core.bpf.btf import find_member, member_offset, read_btf
from temper_core.errors import BpfError

VMLINUX = Path("/sys/kernel/btf/vmlinux")
STRINGS = b"\0task_ctx\0layer_id\0flags\0other\0"


def name(text):
    return STRINGS.index(b"\0" + text.encode() + b"\0") + 1 if text else 0


def record(kind, count=0, body=b"", *, called="", flag=0):
    return struct.pack("<III", name(called), flag << 31 | kind << 24 | count, 0) + body


def struct_of(*members, called="task_ctx", flag=0):
    body = b"".join(struct.pack("<III", name(each), 1, bits) for each, bits in members)
    return record(4, len(members), body, called=called, flag=flag)


def btf(*records, strings=STRINGS):
    types = b"".join(records)
    lengths = 0, len(types), len(types), len(strings)
    return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, *lengths) + types + strings


# One of every kind before the struct that is looked for, each with what follows it in the format.
ALL_KINDS = (
    record(1, body=bytes(4)),
    record(2),
    record(3, body=bytes(12)),
    struct_of(("layer_id", 800), called="other"),
    record(5, 2, bytes(24), called="task_ctx"),
    record(6, 3, bytes(24)),
    *(record(kind) for kind in range(7, 13)),
    record(13, 2, bytes(16)),
    record(14, body=bytes(4)),
    record(15, 2, bytes(24)),
    record(16),
    record(17, body=bytes(4)),
    record(18),
    record(19, 2, bytes(24)),
)


def test_a_member_is_found_behind_records_of_every_kind():
    types = btf(*ALL_KINDS, struct_of(("flags", 0), ("layer_id", 64)))

    assert find_member(types, "task_ctx", "layer_id") == 8


def test_a_member_beside_bit_fields_is_found():
    types = btf(struct_of(("flags", 3 << 24), ("layer_id", 32), flag=1))

    assert find_member(types, "task_ctx", "layer_id") == 4


@pytest.mark.parametrize(
    ("types", "complaint"),
    [
        (b"", "type information is cut short"),
        (b"\0" * 24, "type information begins with 0x0, not 0xeb9f"),
        (btf(struct_of(("layer_id", 0)))[:-1], "type information is cut short"),
        (btf(struct_of(("layer_id", 0))[:-4]), "type information is cut short"),
        (btf(*ALL_KINDS), "no struct task_ctx among the object's types"),
        (btf(struct_of(("flags", 0))), "struct task_ctx has no member layer_id"),
        (btf(struct_of(("layer_id", 2 << 24), flag=1)), "task_ctx.layer_id is a bit field"),
        (btf(struct_of(("layer_id", 3))), "task_ctx.layer_id is a bit field"),
        (btf(record(31), struct_of(("layer_id", 0))), "type information of kind 31 is newer than"),
    ],
)
def test_what_cannot_be_told_is_said_in_one_line(types, complaint):
    with pytest.raises(BpfError) as raised:
        find_member(types, "task_ctx", "layer_id")

    assert str(raised.value).startswith(complaint)


def test_a_kind_from_the_future_hides_only_what_comes_after_it():
    types = btf(struct_of(("layer_id", 64)), record(31))

    assert find_member(types, "task_ctx", "layer_id") == 8


@given(st.binary(max_size=400), st.integers(0, 24), st.integers(0, 600))
def test_no_bytes_raise_anything_else(noise, place, cut):
    whole = btf(*ALL_KINDS, struct_of(("layer_id", 64)))
    for types in (noise, whole[:place] + noise[:4] + whole[place + 4 :], whole[:cut]):
        try:
            assert find_member(types, "task_ctx", "layer_id") >= 0
        except BpfError:
            continue


def test_a_member_of_a_loaded_object_is_found(prober):
    btf_id = maps.info(prober.maps["counted"]).btf_id

    assert member_offset(btf_id, "counts", "threads") == 0
    assert member_offset(btf_id, "counts", "forks") == 8


@pytest.mark.usefixtures("bpf_allowed")
def test_types_that_nobody_has_loaded_are_told():
    with pytest.raises(BpfError, match="cannot read the types of BPF object 4294967295: No such"):
        read_btf(4_294_967_295)


@pytest.mark.skipif(not VMLINUX.exists(), reason="this kernel does not tell its types")
def test_the_kernels_own_types_can_be_read():
    types = VMLINUX.read_bytes()

    assert 0 < find_member(types, "task_struct", "comm") < 65_536
    assert find_member(types, "kernfs_node", "id") > 0
