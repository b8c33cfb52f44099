"""The parts of a capture on their own: pieces, the bounded output, raw files, the store, names."""

import errno
import itertools
import os
import time

import numpy as np
import pytest

from temper_core import InputError
from temper_plugin_tracer.capture import recording
from temper_plugin_tracer.capture.bounds import Bounds, Ending
from temper_plugin_tracer.capture.choosing import Chooser
from temper_plugin_tracer.capture.drained import Drained, Losses, gathered
from temper_plugin_tracer.capture.flight_status import read_status
from temper_plugin_tracer.capture.kernel_layout import NAME, RING
from temper_plugin_tracer.capture.pieces import count_of, first_events, pieces
from temper_plugin_tracer.capture.raw_file import RawFile
from temper_plugin_tracer.capture.recording import record
from temper_plugin_tracer.capture.request import TraceRequest
from temper_plugin_tracer.capture.rings import LAP_OF_NAMES, Ring
from temper_plugin_tracer.capture.staged_output import StagedOutput
from temper_plugin_tracer.capture.store import Store
from temper_plugin_tracer.capture.unlinked_file import UnlinkedFile
from temper_plugin_tracer.capture.who_is_who import KnownThread, Membership, Memberships
from temper_plugin_tracer.trace.events import SCHED_EVENT


def events(*ns):
    made = np.zeros(len(ns), SCHED_EVENT)
    made["ns"] = ns
    return made


def names(*tids):
    made = np.zeros(len(tids), NAME)
    made["tid"] = tids
    return made


def ring(size=8):
    """Return a ring of names, and a function that writes one as the kernel program does."""
    made = Ring(np.zeros(size, NAME), np.zeros(1, RING), LAP_OF_NAMES)

    def write(tid, *, is_whole=True):
        at = int(made.state["reserved"][0])
        made.records[at % size]["tid"] = tid
        if is_whole:
            made.records[at % size]["lap"] = at // size + 1
        made.state["reserved"][0] = at + 1

    return made, write


def test_a_ring_gives_each_record_once_over_many_laps():
    made, write = ring()
    taken = []
    for tid in range(1, 100):
        write(tid)
        if tid % 5 == 0:
            taken += made.take()["tid"].tolist()
    assert taken + made.take()["tid"].tolist() == list(range(1, 100))


def test_a_record_that_is_still_written_and_those_behind_it_wait():
    made, write = ring()
    write(1)
    write(2, is_whole=False)
    write(3)
    assert made.take()["tid"].tolist() == [1]
    made.records[1]["lap"] = 1
    assert made.take()["tid"].tolist() == [2, 3]


def test_a_ring_that_wraps_gives_its_newest_records():
    made, write = ring()
    for tid in range(1, 21):
        write(tid)
    assert made.last()["tid"].tolist() == list(range(13, 21))


def test_pieces_cut_all_cpus_at_the_same_times_and_lose_nothing():
    drained = Drained({0: events(*range(0, 1000, 3)), 2: events(*range(500, 1000, 2))})
    parts = list(pieces(drained, 100))
    assert len(parts) > 3
    assert sum(map(count_of, parts)) == drained.count
    for earlier, later in itertools.pairwise(parts):
        last = max(int(each["ns"][-1]) for each in earlier.values())
        assert all(int(each["ns"][0]) > last for each in later.values())


def test_small_drains_are_joined_in_time_order():
    drains = [
        Drained({0: events(1, 4)}, names(7)),
        Drained({1: events(2), 0: events(3, 6)}, names(8)),
        Drained(),
        Drained({1: events(*range(10, 15))}, names(9)),
    ]
    joined = [
        ({cpu: each["ns"].tolist() for cpu, each in drained.events.items()}, drained.names["tid"])
        for drained in gathered(drains, 5)
    ]
    assert [found for found, _ in joined] == [{0: [1, 3, 4, 6], 1: [2]}, {1: [10, 11, 12, 13, 14]}]
    assert [tids.tolist() for _, tids in joined] == [[7, 8], [9]]
    assert list(gathered([], 5)) == []


def test_the_first_events_of_a_piece_are_the_earliest_of_all_cpus():
    piece = {0: events(1, 5, 9, 9), 1: events(2, 9, 12)}
    assert {cpu: each["ns"].tolist() for cpu, each in first_events(piece, 3).items()} == {
        0: [1, 5],
        1: [2],
    }
    assert count_of(first_events(piece, 5)) == 5
    assert first_events(piece, 0) == {}
    assert first_events(piece, 7) == piece


def test_an_output_never_exceeds_its_bound(tmp_path):
    path = tmp_path / "out"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    output = StagedOutput(descriptor, 10)
    output.write(b"12345")
    assert output.commit(reserve=5)
    output.write(b"6789")
    assert not output.commit(reserve=2)
    output.write(b"abcde")
    assert output.commit()
    os.close(descriptor)
    assert path.read_bytes() == b"12345abcde"


def test_a_raw_file_gives_back_the_drains(tmp_path):
    with UnlinkedFile.create(tmp_path) as file:
        raw = RawFile(file.descriptor)
        raw.write(Drained({1: events(1, 2), 0: events(3)}, names(7)))
        raw.write(Drained())
        raw.write(Drained({0: events(4)}, names()))
        read = [
            ({cpu: each["ns"].tolist() for cpu, each in drained.events.items()}, len(drained.names))
            for drained in raw.drains()
        ]
    assert read == [({1: [1, 2], 0: [3]}, 1), ({}, 0), ({0: [4]}, 0)]


def test_a_drain_that_does_not_fit_on_the_disk_is_not_written_in_part(tmp_path, monkeypatch):
    with UnlinkedFile.create(tmp_path) as file:
        raw = RawFile(file.descriptor)
        raw.write(Drained({0: events(1)}, names()))
        whole, write = raw.bytes_written, os.write

        def full(descriptor, content):
            if len(content) > 64:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(descriptor, content)

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            raw.write(Drained({0: events(2), 1: events(*range(9))}, names()))
        assert raw.bytes_written == whole
        assert os.fstat(file.descriptor).st_size == whole


class Renaming:
    """A recorder beside threads that rename themselves without end."""

    name = "renaming"

    def begin(self):
        pass

    def wait(self, _seconds, _most):
        pass

    def end(self):
        pass

    def is_due(self, _):
        return True

    def drain(self):
        return Drained({0: events(1)}, names(*range(1, 5)))

    def losses(self):
        return Losses(names=7)


def test_names_beyond_the_bound_are_counted_and_take_no_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "MOST_NAMES", 6, raising=False)
    drains = iter((None, None, "asked"))
    with UnlinkedFile.create(tmp_path) as file:
        raw = RawFile(file.descriptor)
        bounds = Bounds(seconds=30.0, free_bytes=0)

        recorded = record(Renaming(), raw, file.descriptor, bounds, lambda: next(drains))

        kept = [drained.names["tid"].tolist() for drained in raw.drains()]
    assert kept == [[1, 2, 3, 4], [1, 2], [], []]
    assert (recorded.names, recorded.losses.names) == (6, 7 + 10)
    assert recorded.events == 4


class Filling(Renaming):
    """A recorder whose buffers get another event by each look, and hold any number of them."""

    def __init__(self):
        self.waiting = 0

    def is_due(self, most):
        self.waiting += 1
        return self.waiting >= most

    def drain(self):
        drained, self.waiting = Drained({0: events(*range(self.waiting))}), 0
        return drained


def test_buffers_that_are_not_due_are_drained_when_a_bound_is_reached(tmp_path):
    with UnlinkedFile.create(tmp_path) as file:
        raw = RawFile(file.descriptor)
        bounds = Bounds(seconds=30.0, events=5, free_bytes=0)

        recorded = record(Filling(), raw, file.descriptor, bounds, lambda: None)

        counts = [drained.count for drained in raw.drains()]
    assert (recorded.events, recorded.ending, counts) == (5, Ending.EVENTS, [5, 0])


def test_what_was_not_due_is_drained_at_the_end(tmp_path):
    looks = iter((None, None, Ending.ASKED))
    with UnlinkedFile.create(tmp_path) as file:
        bounds = Bounds(seconds=30.0, free_bytes=0)

        recorded = record(
            Filling(), RawFile(file.descriptor), file.descriptor, bounds, lambda: next(looks)
        )

    assert (recorded.events, recorded.ending) == (3, Ending.ASKED)


class SlowToAttach(Filling):
    """A recorder that takes longer to attach than the recording may."""

    def begin(self):
        time.sleep(0.2)


def test_the_seconds_count_from_when_all_is_attached(tmp_path):
    with UnlinkedFile.create(tmp_path) as file:
        bounds = Bounds(seconds=0.1, free_bytes=0)

        recorded = record(
            SlowToAttach(), RawFile(file.descriptor), file.descriptor, bounds, lambda: None
        )

    assert recorded.seconds >= 0.2 + 0.1
    assert recorded.events > 0


def test_a_file_has_no_name_until_it_is_published(tmp_path):
    with UnlinkedFile.create(tmp_path) as file:
        os.write(file.descriptor, b"whole")
        assert list(tmp_path.iterdir()) == []
        assert file.publish("x").read_bytes() == b"whole"
    with UnlinkedFile.create(tmp_path) as other, pytest.raises(FileExistsError):
        other.publish("x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def kept(folder, *sizes):
    """Make finished captures, the oldest first."""
    for number, size in enumerate(sizes):
        (folder / f"2026010{number + 1}-000000-abcd.pftrace").write_bytes(b"x" * size)
        (folder / f"2026010{number + 1}-000000-abcd.json").write_text('{"events": 3}')
    return Store(folder)


def test_room_is_made_by_number_and_by_bytes_from_the_oldest_on(tmp_path):
    store = kept(tmp_path, 10, 10, 10, 10)
    assert store.make_room(10) == ["20260101-000000-abcd"]
    assert store.make_room(10, most_bytes=35) == ["20260102-000000-abcd"]
    assert len(list(tmp_path.iterdir())) == 4


def test_traces_of_a_clock_that_ran_ahead_are_removed_first(tmp_path):
    store = kept(tmp_path, 10, 10)
    for number in range(2):
        (tmp_path / f"2999010{number + 1}-000000-abcd.pftrace").write_bytes(b"x" * 10)

    assert store.ids()[0] == "20260102-000000-abcd"
    assert store.make_room(10) == ["29990101-000000-abcd"]


def test_what_an_interrupted_capture_left_is_removed(tmp_path):
    store = kept(tmp_path, 1)
    for name in ("a.partial", "20260109-000000-abcd.json", "20260109-000000-abcd.node", "x.end"):
        (tmp_path / name).write_text("")
    assert len(store.clean()) == 4
    assert store.ids() == ["20260101-000000-abcd"]
    assert store.summary("20260101-000000-abcd")["events"] == 3


def test_a_pipe_in_place_of_a_state_file_hangs_nobody(tmp_path):
    os.mkfifo(tmp_path / "20260101-000000-abcd.json")
    os.mkfifo(tmp_path / "20260101-000000-abcd.flight")

    assert Store(tmp_path).summary("20260101-000000-abcd")["state"] == "finished"
    assert read_status(tmp_path, "20260101-000000-abcd") == {}


def test_a_damaged_summary_leaves_the_trace_listed(tmp_path):
    store = kept(tmp_path, 5)
    (tmp_path / "20260101-000000-abcd.json").write_text("[" * 100_000)
    assert store.summary("20260101-000000-abcd") == {
        "id": "20260101-000000-abcd",
        "state": "finished",
        "bytes": 5,
    }


@pytest.mark.parametrize("name", ["../x", "", "20260101-000000-abcd/..", "20260101-000000-ABCD"])
def test_a_name_that_is_no_id_is_no_trace(tmp_path, name):
    assert kept(tmp_path, 1).trace(name) is None


@pytest.mark.parametrize("cgroup", ["a\0b", "a\ud800b", "../.."])
def test_a_cgroup_of_an_impossible_name_is_not_there(tmp_path, cgroup):
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mountinfo").write_text(f"1 1 0:1 / {tmp_path} rw - cgroup2 none rw\n")
    chooser = Chooser(None, proc_root=str(tmp_path))

    with pytest.raises(InputError, match="there is no cgroup"):
        chooser.choose(TraceRequest(cgroup=cgroup))


def test_a_cpu_that_the_node_has_not_is_refused():
    chooser = Chooser(None, cpus=frozenset({0, 1}))

    with pytest.raises(InputError, match="the node has no CPU 7: it has 2, up to 1"):
        chooser.choose(TraceRequest(cpus=(0, 7)))
    assert chooser.choose(TraceRequest(cpus=(1,))).cpus == (1,)


@pytest.mark.parametrize("root", ["/", "//"])
def test_the_root_of_the_cgroups_is_told_as_the_whole_node(root):
    with pytest.raises(InputError, match="root of all cgroups: the whole node is captured"):
        Chooser(None).choose(TraceRequest(cgroup=root))


def test_a_thread_that_was_never_looked_at_belongs_where_its_process_does():
    known = Membership("shop/web", "group", "high", "layer")
    memberships = Memberships({10: (10, known), 11: (99, known)}, {5: Membership("a/b", "", "low")})
    found = memberships.of(
        [KnownThread(10, 10, "x"), KnownThread(11, 10, "y"), KnownThread(20, 20, "z", cgroup=5)]
    )
    assert found[10] == known
    assert found[11] == Membership("shop/web", "", "high", "layer")
    assert found[20] == Membership("a/b", "", "low", "")
