"""Requests for safe mode: remembered apart, across restarts, whatever the disk says."""

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from temper_core.errors import MachineError
from temper_core.safe_mode import patient_writer
from temper_core.safe_mode.host_file import SafeModeFile
from temper_core.safe_mode.requests import SafeModeRequests
from tests.patience import PATIENCE_S


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def paths(tmp_path):
    return tmp_path / "safe-mode", tmp_path / "state/requests.json"


def test_nobody_asks_at_first(paths):
    assert SafeModeRequests(*paths).active() == {}


def test_requesters_are_remembered_apart_with_reason_and_time(paths):
    requests = SafeModeRequests(*paths, wall=lambda: 17.0)

    requests.add("cli", "maintenance")
    requests.add("dashboard", "worried")
    assert requests.withdraw("cli")

    assert list(requests.active()) == ["dashboard"]
    assert (requests.active()["dashboard"].reason, requests.active()["dashboard"].since) == (
        "worried",
        17.0,
    )


def test_asking_twice_replaces_the_reason_and_keeps_the_time(paths):
    times = iter([1.0, 2.0])
    requests = SafeModeRequests(*paths, wall=lambda: next(times))

    requests.add("cli", "first")
    requests.add("cli", "second")

    assert (requests.active()["cli"].reason, requests.active()["cli"].since) == ("second", 1.0)


def test_withdrawing_what_was_never_asked_says_so(paths):
    assert not SafeModeRequests(*paths).withdraw("nobody")


def test_requests_survive_a_restart_of_the_agent(paths):
    SafeModeRequests(*paths).add("cli", "maintenance")

    assert SafeModeRequests(*paths).active()["cli"].reason == "maintenance"


def test_a_request_that_the_agent_before_was_asked_late_is_read_at_the_start(paths):
    requests = SafeModeRequests(*paths)
    before = SafeModeRequests(*paths)
    before.add("cli", "maintenance")

    requests.read_again()

    assert requests.active()["cli"].reason == "maintenance"


def test_the_state_is_readable_by_its_owner_only(paths):
    SafeModeRequests(*paths).add("cli", "maintenance")

    assert paths[1].stat().st_mode & 0o777 == 0o600
    assert [one.name for one in paths[1].parent.iterdir()] == ["requests.json"]


def test_the_hosts_file_is_a_requester_of_its_own(paths):
    file, _ = paths
    requests = SafeModeRequests(*paths)

    file.write_text("disk swap\nby anna\n")
    assert requests.poll_file()
    assert requests.active()["file"].reason == "disk swap; by anna"
    assert not requests.poll_file()
    assert not requests.withdraw("file")
    file.unlink()
    assert requests.poll_file()

    assert requests.active() == {}


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/nowhere")])
def test_anything_in_the_files_place_asks_and_nothing_blocks(paths, make):
    make(paths[0])

    requests = SafeModeRequests(*paths)

    assert requests.active()["file"].reason == f"{paths[0]} is there"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.touch()])
def test_looking_at_whatever_is_in_the_files_place_keeps_no_descriptor(paths, make):
    make(paths[0])
    requests = SafeModeRequests(*paths)
    before = open_descriptors()

    for _ in range(20):
        requests.poll_file()

    assert open_descriptors() == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b'{"requests": {"cli": "yes"}}',
        b'{"requests": {"cli": {"reason": 1, "since": 2}}}',
        b'{"requests": {}, "surprise": 1}',
        b"[" * 100_000,
    ],
)
def test_a_state_that_makes_no_sense_is_a_request_of_its_own(paths, content):
    _, state = paths
    state.parent.mkdir()
    state.write_bytes(content)

    requests = SafeModeRequests(*paths)

    assert list(requests.active()) == ["unreadable-state"]
    assert str(state) in requests.active()["unreadable-state"].reason


def test_an_unreadable_state_is_written_anew_once_it_was_withdrawn(paths):
    _, state = paths
    state.parent.mkdir()
    state.write_bytes(b"{")
    requests = SafeModeRequests(*paths)

    assert requests.withdraw("unreadable-state")

    assert not state.exists()
    assert SafeModeRequests(*paths).active() == {}


def test_entering_succeeds_where_nothing_can_be_written(paths):
    paths[1].parent.write_text("a file where the directory should be")
    requests = SafeModeRequests(*paths)

    with capture_logs() as logs:
        requests.add("cli", "maintenance")

    assert "cli" in requests.active()
    assert str(paths[1]) in requests.defect
    assert any(entry["event"] == "safe_mode_state_not_written" for entry in logs)


def test_entering_succeeds_on_a_full_disk_and_the_old_state_stays_whole(paths, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        requests = SafeModeRequests(paths[0], disk / "requests.json")
        requests.add("first", "while there was room")
        (disk / "ballast").write_bytes(b"x" * 4096)

        requests.add("second", "y" * 400)

        assert set(requests.active()) == {"first", "second"}
        assert "No space left" in requests.defect
        assert set(SafeModeRequests(paths[0], disk / "requests.json").active()) == {"first"}
        (disk / "ballast").unlink()
        requests.add("third", "room again")
        assert requests.defect == ""
        assert len(SafeModeRequests(paths[0], disk / "requests.json").active()) == 3
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_whoever_waits_is_told_of_every_change(paths):
    told: list[str] = []
    requests = SafeModeRequests(*paths, changed=lambda: told.append("changed"))

    requests.add("cli", "x")
    requests.withdraw("cli")
    paths[0].touch()
    requests.poll_file()

    assert len(told) == 3


def test_many_threads_may_ask_at_once(paths):
    requests = SafeModeRequests(*paths)
    threads = [
        threading.Thread(target=requests.add, args=(f"thread-{n}", "at once")) for n in range(12)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(requests.active()) == 12
    assert len(SafeModeRequests(*paths).active()) == 12


def test_names_and_reasons_of_any_length_are_cut(paths):
    requests = SafeModeRequests(*paths)

    requests.add("x" * 10_000, "y" * 10_000)

    ((name, request),) = requests.active().items()
    assert (len(name), len(request.reason)) == (64, 500)
    assert requests.withdraw("x" * 10_000)


@pytest.fixture
def full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    (disk / "ballast").write_bytes(b"x" * 4096)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_takes_an_empty_file_whose_existence_requests_safe_mode(full_disk, paths):
    file = SafeModeFile(full_disk / "safe-mode")

    note = file.add("cli", "latency")

    assert [path.name for path in full_disk.iterdir() if path.name != "ballast"] == ["safe-mode"]
    assert file.path.read_bytes() == b""
    assert "No space left on device" in note
    assert "file" in SafeModeRequests(file.path, paths[1]).active()
    assert not file.remove("cli")


def test_a_request_that_no_disk_could_keep_is_not_forgotten_by_the_next_agent(full_disk, paths):
    state = full_disk / "requests.json"
    requests = SafeModeRequests(paths[0], state)

    requests.add("cli", "latency")

    assert "No space left" in requests.defect
    assert requests.unkept == ""
    assert state.read_bytes() == b""
    assert SafeModeRequests(paths[0], state).active()
    requests.withdraw("cli")
    assert not SafeModeRequests(paths[0], state).active()


def test_a_request_beside_one_that_is_kept_is_not_taken_for_kept(full_disk, paths, monkeypatch):
    monkeypatch.setattr("temper_core.safe_mode.requests.AGAIN_S", 0.0)
    state = full_disk / "requests.json"
    (full_disk / "ballast").unlink()
    requests = SafeModeRequests(paths[0], state)
    requests.add("alice", "a drill")  # whose file takes the whole disk

    requests.add("bob", "latency")

    assert "No space left" in requests.unkept
    assert [*SafeModeRequests(paths[0], state).active()] == ["alice"]

    subprocess.run(["mount", "-o", "remount,size=64k", str(full_disk)], check=True)
    requests.poll_file()
    deadline = time.monotonic() + PATIENCE_S
    while requests.defect:
        assert time.monotonic() < deadline
        time.sleep(0.01)

    assert requests.unkept == ""
    assert {*SafeModeRequests(paths[0], state).active()} == {"alice", "bob"}


def test_requests_in_memory_only_are_told_as_such_until_they_are_kept_again(paths):
    requests = SafeModeRequests(*paths)
    requests.add_in_memory("kubernetes", "a restoration")

    requests.add("cli", "latency")

    assert "in memory only" in requests.unkept
    assert not SafeModeRequests(*paths).active()
    requests.keep_on_disk(is_kept=True)
    assert requests.unkept == ""
    assert {*SafeModeRequests(*paths).active()} == {"cli", "kubernetes"}


def test_without_a_thread_the_host_file_is_heard_all_the_same(full_disk, paths, monkeypatch):
    requests = SafeModeRequests(paths[0], full_disk / "requests.json")
    requests.add("cli", "latency")

    def no_thread(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(patient_writer._thread, "start_new_thread", no_thread)
    paths[0].touch()

    assert requests.poll_file()
    assert "file" in requests.active()


def test_a_full_disk_has_room_in_the_last_block_of_a_file_that_is_there(full_disk):
    (full_disk / "ballast").unlink()
    file = SafeModeFile(full_disk / "safe-mode")
    file.add("alice", "first")

    assert file.add("bob", "x" * 400) == ""

    subprocess.run(["mount", "-o", "remount,size=64k", str(full_disk)], check=True)
    assert file.remove("alice")
    assert file.remove("bob")
    assert not file.path.exists()


@pytest.mark.parametrize("size", [4080, 4096], ids=["room for a part of a line", "no room"])
def test_a_full_disk_takes_nothing_from_a_file_that_is_there(full_disk, size):
    (full_disk / "ballast").unlink()
    file = SafeModeFile(full_disk / "safe-mode")
    file.path.write_bytes(b"x" * size)

    with pytest.raises(MachineError, match="No space left on device; what it holds requests"):
        file.add("bob", "latency")

    assert file.path.read_bytes() == b"x" * size


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "place").write_text("no directory")

    with pytest.raises(MachineError, match="cannot write"):
        SafeModeFile(tmp_path / "place/safe-mode").add("cli", "")
