import os
import pwd
import subprocess
import threading
from pathlib import Path

import pytest

from temper_plugin_console.top.processes import Process, read_processes, user_name
from tests.core.node.trees import write_files


@pytest.fixture
def sleeping():
    process = subprocess.Popen(["sleep", "600"])
    yield process.pid
    process.kill()
    process.wait()


def thread_of(pid, **changes):
    return {"tid": pid, "tgid": pid, "comm": "sleep", **changes}


def test_a_process_is_told_with_its_user_and_its_resident_memory(sleeping):
    [process] = read_processes([thread_of(sleeping)]).values()

    status = Path(f"/proc/{sleeping}/status").read_text()
    resident_kib = int(status.partition("VmRSS:")[2].split()[0])
    assert process.user == pwd.getpwuid(os.getuid()).pw_name
    assert process.memory_bytes == pytest.approx(resident_kib * 1024, rel=0.3)


def test_threads_of_one_process_share_it():
    own = {"tgid": os.getpid(), "comm": Path("/proc/self/comm").read_text().strip()}
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        found = read_processes([{**own, "tid": os.getpid()}, {**own, "tid": other.native_id}])
    finally:
        done.set()
        other.join()

    assert [*found] == [os.getpid()]


@pytest.mark.parametrize(
    "thread", [{"comm": "another"}, {"tid": 2**31 - 1}, {"tgid": 2**31 - 1}, {"tid": None}]
)
def test_a_thread_that_is_not_on_this_host_has_no_process(sleeping, thread):
    assert read_processes([thread_of(sleeping, **thread)]) == {}


@pytest.mark.parametrize("statm", ["", "7", "7 many 0"])
def test_a_malformed_file_is_no_process(tmp_path, statm):
    write_files(tmp_path, {"7/task/7/comm": "sleep\n", "7/statm": statm})

    assert read_processes([thread_of(7)], tmp_path) == {}


def test_pages_are_counted_in_bytes(tmp_path):
    write_files(tmp_path, {"7/task/7/comm": "sleep\n", "7/statm": "90 5 1 1 0 1 0\n"})

    [process] = read_processes([thread_of(7)], tmp_path).values()
    assert process == Process(process.user, 5 * os.sysconf("SC_PAGE_SIZE"))


def test_a_user_without_a_name_is_a_number():
    assert user_name(4_000_000_001) == "4000000001"
