import errno
import os
import struct
import threading
from pathlib import Path

import pytest

from temper_core.bpf import maps
from temper_core.errors import BpfError

PIDFD_THREAD = os.O_EXCL  # Linux 6.9: a thread may be named that does not lead its process


def u32(value):
    return struct.pack("<I", value)


def u64(value):
    return struct.pack("<Q", value)


@pytest.fixture
def seen(tally):
    """A hash of four elements, u32 to u64."""
    return tally.maps["seen"]


def test_what_is_set_is_read_by_us_and_by_the_program(tally, seen):
    maps.update(seen, u32(7), u64(70))

    assert maps.lookup(seen, u32(7), 8) == u64(70)
    assert tally.run("value_of_seven") == 70


def test_an_element_is_set_anew(seen):
    maps.update(seen, u32(7), u64(70))
    maps.update(seen, u32(7), u64(71))

    assert maps.lookup(seen, u32(7), 8) == u64(71)


def test_an_element_that_is_not_there_is_none(seen):
    assert maps.lookup(seen, u32(7), 8) is None


def test_deleting_tells_whether_there_was_one(seen):
    maps.update(seen, u32(7), u64(70))

    assert maps.delete(seen, u32(7))
    assert not maps.delete(seen, u32(7))
    assert maps.lookup(seen, u32(7), 8) is None


def test_several_are_set_at_once(seen):
    maps.update_many(seen, [(u32(key), u64(key * 10)) for key in range(4)])

    assert {key: maps.lookup(seen, key, 8) for key in maps.keys(seen, 4)} == {
        u32(key): u64(key * 10) for key in range(4)
    }


def test_setting_none_at_once_does_nothing(seen):
    maps.update_many(seen, [])

    assert list(maps.keys(seen, 4)) == []


def test_a_map_of_a_kind_without_batches_is_set_one_by_one(tally):
    mine = os.pidfd_open(os.getpid())
    try:
        maps.update_many(tally.maps["per_task"], [(u32(mine), u64(5))])

        assert maps.lookup(tally.maps["per_task"], u32(mine), 8) == u64(5)
    finally:
        os.close(mine)


def test_a_full_map_says_so_and_keeps_what_it_took(seen):
    with pytest.raises(BpfError, match="cannot update a BPF map: ") as raised:
        maps.update_many(seen, [(u32(key), u64(key)) for key in range(5)])

    assert raised.value.errno == errno.E2BIG
    assert len(list(maps.keys(seen, 4))) == 4


def test_every_element_can_be_deleted_while_walking(seen):
    maps.update_many(seen, [(u32(key), u64(key)) for key in range(4)])

    walked = [key for key in maps.keys(seen, 4) if maps.delete(seen, key)]

    assert sorted(walked) == [u32(key) for key in range(4)]
    assert list(maps.keys(seen, 4)) == []


def test_a_thread_is_named_by_its_pidfd_until_it_ends(tally):
    per_task = tally.maps["per_task"]
    started, may_end = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (started.set(), may_end.wait()))
    thread.start()
    started.wait()
    its = os.pidfd_open(thread.native_id, PIDFD_THREAD)

    maps.update(per_task, u32(its), u64(9))
    while_alive = maps.lookup(per_task, u32(its), 8)
    may_end.set()
    thread.join()
    while Path(f"/proc/self/task/{thread.native_id}").exists():
        threading.Event().wait(0.001)
    with pytest.raises(BpfError) as raised:
        maps.update(per_task, u32(its), u64(9))
    os.close(its)

    assert while_alive == u64(9)
    assert raised.value.errno == errno.ENOENT


def test_a_map_says_what_it_is(seen):
    known = maps.info(seen)

    assert (known.name, known.kind, known.key_size, known.value_size) == ("seen", 1, 4, 8)
    assert (known.max_entries, known.flags) == (4, 0)
    assert known.btf_id > 0


def test_a_pinned_map_is_opened_by_its_path(seen, bpffs):
    maps.update(seen, u32(1), u64(11))
    maps.pin(seen, bpffs / "seen")

    opened = maps.open_pinned(bpffs / "seen")
    try:
        assert maps.info(opened) == maps.info(seen)
        assert maps.lookup(opened, u32(1), 8) == u64(11)
    finally:
        os.close(opened)


def test_a_pin_that_is_there_is_not_replaced(seen, bpffs):
    maps.pin(seen, bpffs / "seen")

    with pytest.raises(BpfError, match=r"cannot pin a BPF map at .*/seen: File exists"):
        maps.pin(seen, bpffs / "seen")


def test_a_map_cannot_be_pinned_outside_a_bpffs(seen, tmp_path):
    with pytest.raises(BpfError, match="Operation not permitted"):
        maps.pin(seen, tmp_path / "seen")


def test_a_pin_that_is_not_there_is_named(bpffs):
    with pytest.raises(BpfError, match=r"cannot open the BPF map .*/none: No such file"):
        maps.open_pinned(bpffs / "none")


def test_a_map_is_opened_by_its_id(seen):
    opened = maps.open_by_id(maps.info(seen).id)
    try:
        assert maps.info(opened) == maps.info(seen)
    finally:
        os.close(opened)


@pytest.mark.usefixtures("bpf_allowed")
def test_all_maps_of_the_machine_are_listed(seen):
    own = maps.info(seen).id

    assert own in list(maps.all_ids())
    assert own not in maps.struct_ops_ids()


def test_an_id_that_nobody_has_is_told():
    with pytest.raises(BpfError, match="cannot open BPF map 4294967295: No such file"):
        maps.open_by_id(4_294_967_295)


def test_the_maps_a_process_holds_are_found(tally):
    ids = {maps.info(fd).id for fd in tally.maps.values()}

    assert ids <= set(maps.map_ids_of(os.getpid()))


def test_only_lines_with_a_number_name_a_map(tmp_path):
    folder = tmp_path / "7" / "fdinfo"
    folder.mkdir(parents=True)
    for name, text in {
        "0": "pos:\t0\n",
        "1": "map_id:\t12\nmemlock:\t0\n",
        "2": "map_id:\t-\n",
    }.items():
        (folder / name).write_text(text)

    assert maps.map_ids_of(7, proc_root=tmp_path) == (12,)


def test_a_process_that_is_gone_holds_none(tmp_path):
    assert maps.map_ids_of(7, proc_root=tmp_path) == ()


def test_what_is_no_map_is_refused_by_its_name():
    with Path("/dev/null").open("rb") as null, pytest.raises(BpfError) as raised:
        maps.update(null.fileno(), b"1234", b"1234")

    assert str(raised.value).startswith("cannot update a BPF map: ")
