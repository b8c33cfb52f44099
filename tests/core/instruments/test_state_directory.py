"""State directories on a real file system: made lazily, bounded, and never through links."""

import os
import stat
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from temper_core import InputError, MachineError
from temper_core.instruments.state_directory import InstrumentDirectory
from temper_core.instruments.upkeep import SWEEP_S, StateDirectories


@pytest.fixture
def base(tmp_path):
    return tmp_path / "temper"


@pytest.fixture
def state(base):
    return InstrumentDirectory(base, "tracer", 100)


def names_in(path):
    return sorted(each.name for each in Path(path).iterdir())


def put(path, size, age_s):
    """Make a file of that size that was last written so long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def test_it_is_made_when_it_is_asked_for_and_no_one_else_may_enter(base, state):
    assert (state.used_bytes(), base.exists()) == (0, False)

    path = state.path

    assert path == base / "instruments/tracer"
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)]
    assert modes == [0o700, 0o700]


def test_a_directory_that_others_may_enter_is_closed_to_them(base, state):
    (base / "instruments/tracer").mkdir(parents=True, mode=0o755)

    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700


def test_a_file_is_replaced_as_a_whole_and_readable_by_its_owner_alone(state):
    first = state.write("model.json", b"one")
    held = first.open("rb")

    second = state.write("model.json", b"second")

    with held:
        assert (held.read(), second.read_bytes()) == (b"one", b"second")
    assert stat.S_IMODE(second.stat().st_mode) == 0o600
    assert names_in(state.path) == ["model.json"]
    assert state.used_bytes() == 6


def test_what_does_not_fit_is_refused_and_what_was_there_stays(state):
    state.write("one", b"x" * 60)
    with pytest.raises(MachineError, match=r"41 bytes do not fit; .* other files take 60 of 100"):
        state.write("two", b"x" * 41)

    state.write("one", b"y" * 100)

    assert state.used_bytes() == 100


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc/passwd", ".hidden", "x" * 101, "a\0b"])
def test_a_name_that_leads_elsewhere_is_refused(state, name):
    with pytest.raises(InputError, match="is not a valid name of a state file"):
        state.write(name, b"")


@pytest.mark.parametrize("link", ["", "instruments", "instruments/tracer"])
def test_a_link_in_the_place_of_a_directory_is_refused(tmp_path, base, state, link):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (base / link).parent.mkdir(parents=True, exist_ok=True)
    (base / link).symlink_to(elsewhere)

    for use in (lambda: state.path, lambda: state.write("file", b"x")):
        with pytest.raises(MachineError, match="is a link, and not followed"):
            use()

    assert list(elsewhere.iterdir()) == []


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_written_through(tmp_path, state):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (state.path / "model").symlink_to(victim)
    (state.path / ".model.new").symlink_to(victim)

    state.write("model", b"theirs")

    assert victim.read_text() == "mine"
    assert not (state.path / "model").is_symlink()


def test_what_stands_in_its_place_is_named(base, state):
    (base / "instruments").mkdir(parents=True)
    (base / "instruments/tracer").write_text("a file")

    with pytest.raises(MachineError, match="tracer is not a directory"):
        _ = state.path


def test_without_a_directory_of_the_agents_there_is_none_for_an_instrument(tmp_path):
    with pytest.raises(MachineError, match=r"\[safe_mode\] state is not an absolute path"):
        _ = InstrumentDirectory(tmp_path.relative_to("/"), "tracer", 100).path


def test_nothing_is_made_or_written_while_nothing_may_be(base):
    @contextmanager
    def refusing():
        raise MachineError("a restoration is active")
        yield

    state = InstrumentDirectory(base, "tracer", 100, refusing)

    for use in (lambda: state.path, lambda: state.write("file", b"x")):
        with pytest.raises(MachineError, match="a restoration is active"):
            use()
    assert not base.exists()


def test_files_written_directly_are_measured_and_the_oldest_removed(state):
    old = put(state.path / "deep/old", 50, age_s=300)
    middle = put(state.path / "middle", 50, age_s=200)
    new = put(state.path / "new", 90, age_s=100)

    trimmed = state.trim()

    assert [each.exists() for each in (old, middle, new)] == [False, False, True]
    assert (trimmed.files, trimmed.size_bytes, trimmed.left.size_bytes) == (2, 100, 90)
    assert state.trim() is None


def test_records_of_changed_values_stay(state):
    records = [
        put(state.path / f"{name}-values.json", 50, age_s=300) for name in ("kernel", "device")
    ]
    others = [put(state.path / "deep/kernel-values.json", 50, age_s=200)]
    others.append(put(state.path / "log", 50, age_s=100))

    trimmed = state.trim()

    assert trimmed.files == 2
    assert [each.exists() for each in (*records, *others)] == [True, True, False, False]


def test_trimming_follows_no_link_and_removes_regular_files_only(tmp_path, state):
    victim = put(tmp_path / "victims/large", 1000, age_s=900)
    (state.path / "link").symlink_to(victim)
    (state.path / "folder").symlink_to(victim.parent)
    os.mkfifo(state.path / "pipe")
    put(state.path / "own", 101, age_s=0)

    trimmed = state.trim()

    assert (trimmed.files, trimmed.left.files) == (1, 0)
    assert victim.exists()
    assert names_in(state.path) == ["folder", "link", "pipe"]


def test_more_files_than_may_be_are_over_the_bound_too(base, monkeypatch):
    monkeypatch.setattr("temper_core.instruments.state_directory.MOST_FILES", 20)
    state = InstrumentDirectory(base, "tracer", 1000)
    for number in range(30):
        put(state.path / f"{number:02}", 0, age_s=100 - number)

    trimmed = state.trim()

    assert trimmed.files == 10
    assert names_in(state.path)[0] == "10"
    with pytest.raises(MachineError, match="holds 20 files already"):
        state.write("another", b"")


def test_directories_that_are_nested_without_end_are_told_and_cost_no_descriptors(base):
    states = StateDirectories(base)
    state = states.of("tracer", 100)
    place = os.open(state.path, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("deeper", dir_fd=place)
        below = os.open("deeper", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    before = len(names_in("/proc/self/fd"))

    states.sweep()

    assert len(names_in("/proc/self/fd")) == before
    assert states.defects == (
        "instrument tracer: state directory: not all of it could be measured",
    )
    states.close()


def test_a_sweep_trims_tells_and_counts(base):
    recorded = []
    states = StateDirectories(base, record=lambda *each: recorded.append(each))
    try:
        state = states.of("tracer", 100)
        put(state.path / "old", 80, age_s=100)
        put(state.path / "new", 70, age_s=0)

        states.sweep()
        after_one = states.defects
        states.sweep()
    finally:
        states.close()

    (event,) = recorded
    assert event[:2] == ("state_trimmed", "instrument tracer")
    assert event[2].startswith("1 of its oldest files removed")
    assert after_one == (f"instrument tracer: state directory: {event[2]}",)
    assert states.defects == ()
    assert states.sizes() == {"tracer": (70, 100)}


def test_an_event_that_cannot_be_recorded_keeps_no_sweep_from_its_work(base):
    def refuse(*_):
        raise InputError("unknown kind")

    states = StateDirectories(base, record=refuse)
    state = states.of("tracer", 10)
    put(state.path / "old", 80, age_s=100)

    states.sweep()
    states.close()

    assert states.sizes() == {"tracer": (0, 10)}


def test_directories_are_measured_in_a_thread_that_ends(base, monkeypatch):
    monkeypatch.setattr("temper_core.instruments.upkeep.SWEEP_S", 0.05)
    others = set(threading.enumerate())
    states = StateDirectories(base)
    state = states.of("tracer", 100)
    put(state.path / "old", 101, age_s=1)

    deadline = time.monotonic() + 60
    while names_in(state.path):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    states.close()

    own = set(threading.enumerate()) - others
    assert not [each for each in own if each.name == "instrument-state"]


def test_the_thread_ends_when_it_is_closed_between_its_wait_and_its_measurement(base, monkeypatch):
    class LateEvent(threading.Event):
        def wait(self, timeout=None):
            is_set = super().wait(timeout)
            if not is_set:
                time.sleep(0.2)
            return is_set

    before = set(threading.enumerate())
    monkeypatch.setattr("temper_core.instruments.upkeep.SWEEP_S", 0.001)
    monkeypatch.setattr("temper_core.instruments.upkeep.FIRST_SWEEP_S", 0.001)
    monkeypatch.setattr("temper_core.instruments.upkeep.threading.Event", LateEvent)
    states = StateDirectories(base)
    states.of("tracer", 100)
    time.sleep(0.5)

    states.close()

    assert not [
        thread
        for thread in set(threading.enumerate()) - before
        if thread.name == "instrument-state"
    ]


def test_two_threads_may_write_at_once_and_both_stay_within_the_bound(state):
    refused = []

    def write(letter):
        for number in range(20):
            try:
                state.write(f"{letter}{number}", b"x" * 10)
            except MachineError:
                refused.append(letter)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert state.used_bytes() == 100
    assert len(refused) == 30


def test_a_directory_that_is_asked_for_later_is_measured_soon_too(tmp_path):
    states = StateDirectories(tmp_path / "temper")
    soon_s = SWEEP_S / 2

    for name in ("early", "late"):
        (states.of(name, 1000).path / "file").write_bytes(b"x" * 10)
        deadline = time.monotonic() + soon_s
        while name not in states.sizes():
            assert time.monotonic() < deadline, name
            time.sleep(0.02)
    states.close()

    assert {name: size for name, (size, _) in states.sizes().items()} == {"early": 10, "late": 10}
