"""Requests for safe mode while the disk of their file answers nothing."""

import threading

import pytest

from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.safe_mode.state_file import StateFile
from tests.control_plane.cluster import wait_until
from tests.patience import PATIENCE_S


@pytest.fixture
def paths(tmp_path):
    return tmp_path / "safe-mode", tmp_path / "requests.json"


@pytest.fixture
def aside():
    """Call a function on a thread of its own, which may stand for as long as the disk does."""
    threads = []

    def call(function, *arguments):
        threads.append(threading.Thread(target=function, args=arguments))
        threads[-1].start()

    yield call
    for thread in threads:
        thread.join(PATIENCE_S)


def test_a_request_for_memory_only_holds_before_the_disk_is_touched(paths, disk, aside):
    requests = SafeModeRequests(*paths, kept=disk.stand)
    disk.hang()

    aside(requests.add_in_memory, "kubernetes", "restore")

    wait_until(requests.active, "the request", PATIENCE_S)
    assert not requests.is_kept
    assert not requests.is_off_disk
    disk.answer()
    wait_until(lambda: requests.is_off_disk, "the end of the file", PATIENCE_S)


def test_a_withdrawal_that_waits_for_the_disk_delays_no_later_request(paths, disk, aside):
    requests = SafeModeRequests(*paths)
    requests.add("a", "")
    disk.hang()

    def off_and_on():
        requests.withdraw("a")
        requests.add("b", "")
        requests.add("c", "")

    aside(off_and_on)

    wait_until(lambda: {*requests.active()} == {"b", "c"}, "the later requests", PATIENCE_S)


def test_a_write_without_memory_is_a_defect_and_is_tried_again(paths, monkeypatch):
    write, failures = StateFile.write, [MemoryError()]

    def fail_once(state, requests):
        if failures and state.path == paths[1]:  # an earlier test may still write
            raise failures.pop()
        write(state, requests)

    monkeypatch.setattr(StateFile, "write", fail_once)
    requests = SafeModeRequests(*paths)
    requests.add("a", "")
    defect = requests.defect
    requests.poll_file()

    assert defect.endswith("cannot be written: out of memory")
    wait_until(paths[1].exists, "the file", PATIENCE_S)
    wait_until(lambda: not requests.defect, "the end of the defect", PATIENCE_S)


def test_a_disk_that_hangs_is_a_defect_until_the_newest_requests_are_on_it(paths, disk):
    requests = SafeModeRequests(*paths)
    disk.hang()

    requests.add("a", "")
    requests.add("b", "")

    problem = f"{paths[1]} is not written: the disk has not answered for 2 s"
    assert (requests.defect, requests.unkept) == (problem, problem)
    disk.answer()
    wait_until(lambda: not requests.defect, "the disk", PATIENCE_S)
    wait_until(lambda: {*StateFile(paths[1]).read()} == {"a", "b"}, "the write", PATIENCE_S)
    assert requests.unkept == ""
