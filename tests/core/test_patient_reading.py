"""Reads that block are left behind, and few of them."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from temper_core import patient_reading
from temper_core.patient_reading import (
    MOST_STUCK,
    OWNER_STUCK,
    WINDOW_S,
    PatientReader,
    cgroup_owner,
)
from tests.core.steering.processes import until

UNIFIED = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
POD = "8f1c2d3e_4a5b_6c7d_8e9f_0a1b2c3d4e5f"


class Files:
    """Answers its number, but holds back those that are locked."""

    def __init__(self):
        self.locked = {}
        self.asked = []

    def lock(self, number):
        self.locked[number] = threading.Event()

    def unlock(self, number):
        self.locked.pop(number).set()

    def __call__(self, number):
        self.asked.append(number)
        if number in self.locked:
            self.locked[number].wait()
        return f"text {number}"


@pytest.fixture
def files():
    files = Files()
    yield files
    for number in [*files.locked]:
        files.unlock(number)


@pytest.fixture
def reader(files):
    reader = PatientReader(files, wait_s=0.05)
    yield reader
    reader.close()


def test_what_can_be_read_is_returned(reader):
    assert [reader.read(number) for number in (1, 2, 1)] == ["text 1", "text 2", "text 1"]


def test_a_read_that_blocks_returns_nothing_and_does_not_stop_the_others(reader, files):
    files.lock(7)

    blocked, other = reader.read(7), reader.read(8)

    assert (blocked, other) == (None, "text 8")


def test_nobody_asks_again_for_what_is_still_blocked(reader, files):
    files.lock(7)
    reader.read(7)

    reader.read(7)

    assert files.asked == [7]


def test_what_blocked_is_read_once_it_does_not_any_more(reader, files):
    files.lock(7)
    reader.read(7)

    files.unlock(7)

    until(lambda: reader.read(7) == "text 7")


def test_few_threads_are_ever_left_behind(reader, files):
    for number in range(MOST_STUCK + 8):
        files.lock(number)

    for number in range(MOST_STUCK + 8):
        reader.read(number)

    assert len(files.asked) == MOST_STUCK


def by_tens(number):
    return str(number // 10)


@pytest.fixture
def owned(files):
    reader = PatientReader(files, wait_s=0.05, owner_of=by_tens)
    yield reader
    reader.close()


def test_an_owner_whose_processes_block_is_left_out_and_delays_no_other(owned, files):
    for number in range(10):
        files.lock(number)
    for number in range(9):
        owned.read(number)

    assert files.asked == list(range(OWNER_STUCK))
    assert owned.read(10) == "text 10"


def test_an_owner_whose_processes_answer_slowly_is_left_out_for_a_while(monkeypatch):
    now = 0.0
    monkeypatch.setattr(patient_reading.time, "monotonic", lambda: now)

    def slow(number):
        nonlocal now
        now += 0.09 * (number < 10)
        return f"text {number}"

    reader = PatientReader(slow, wait_s=5.0, owner_of=by_tens)
    answers = [reader.read(number) for number in range(8)]
    other = reader.read(10)
    now += WINDOW_S
    later = reader.read(7)
    reader.close()

    assert answers == [f"text {number}" for number in range(4)] + [None] * 4
    assert (other, later) == ("text 10", "text 7")


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        (
            "/kubepods.slice/kubepods-burstable.slice/kubepods-pod1.slice/cri-1.scope/x",
            "kubepods-pod1.slice",
        ),
        (f"/kubepods.slice/kubepods-pod{POD}.slice/cri-1.scope", f"kubepods-pod{POD}.slice"),
        (f"/kubepods/pod{POD}/a", f"pod{POD}"),
        (f"/k3s.service/kubepods/pod{POD}/a", f"pod{POD}"),
        ("/user.slice/user-1.slice/user@1.service/app.slice/a.scope", "user-1.slice"),
        ("/user.slice/user-1.slice/session-7.scope", "user-1.slice"),
        (f"/user.slice/user-1.slice/pod{POD}", "user-1.slice"),
        ("/system.slice/docker-1.scope", "docker-1.scope"),
        ("/system.slice/ci.service/own-name", "ci.service"),
        (f"/lxc.payload.c1/pod{POD}", "lxc.payload.c1"),
        ("/lxc.payload.c1/a/b", "lxc.payload.c1"),
        ("/", "other"),
    ],
)
def test_the_owner_of_a_process_is_its_pod_user_or_service(tmp_path, path, owner):
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text(f"1:cpu:/other\n0::{path}\n")

    assert cgroup_owner(tmp_path)(7).rpartition("/")[2] == owner


OTHER_POD = POD.replace("8f1", "9e2")


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        (
            f"0::/../../../kubepods-besteffort.slice/kubepods-besteffort-pod{POD}.slice/cri-1.scope",
            f"kubepods-besteffort.slice/kubepods-besteffort-pod{POD}.slice",
        ),
        (f"0::/../../kubepods-pod{POD}.slice/cri-1.scope/own/names", f"kubepods-pod{POD}.slice"),
        ("0::/../../../../system.slice/ssh.service", "system.slice/ssh.service"),
        ("0::/../../../../user.slice/user-1.slice/session-7.scope", "user.slice/user-1.slice"),
        ("0::/", ""),
        (f"0::/a/b/c/d/e/pod{POD}/x", f"a/b/c/d/e/pod{POD}"),
        (f"0::/docker/{'a' * 64}/pod{POD}/x", f"docker/{'a' * 64}"),
        (
            f"2:cpu,cpuacct:/kubepods/pod{POD}/x\n1:name=systemd:/kubepods/pod{OTHER_POD}/x\n0::/",
            f"kubepods/pod{OTHER_POD}",
        ),
        (
            f"2:cpu,cpuacct:/kubepods/burstable/pod{POD}/x\n1:name=systemd:/",
            f"kubepods/burstable/pod{POD}",
        ),
    ],
)
def test_the_owner_is_found_from_a_cgroup_namespace_and_on_a_hybrid_host(tmp_path, text, owner):
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text(f"{text}\n")

    assert cgroup_owner(tmp_path)(7) == owner


def test_the_pods_of_another_class_are_different_owners_in_a_real_cgroup_namespace():
    """As the agent of the chart sees them: its container has a cgroup namespace of its own."""
    unified = next((root for root in UNIFIED if (root / "cgroup.procs").exists()), None)
    if os.geteuid() != 0 or unified is None:
        pytest.skip("needs root and cgroup v2")
    top = unified / f"temper-test-{os.getpid()}.slice"
    mine = top / "own.slice/agent.scope"
    pods = [
        top / f"kubepods-besteffort.slice/kubepods-besteffort-pod{uid}.slice"
        for uid in (POD, OTHER_POD)
    ]
    sleepers = []
    try:
        for directory in (mine, *pods):
            directory.mkdir(parents=True)
        for pod in pods:
            sleepers.append(subprocess.Popen(["sleep", "60"]))
            (pod / "cgroup.procs").write_text(str(sleepers[-1].pid))
        asked = " ".join(str(sleeper.pid) for sleeper in sleepers)
        code = (
            "import sys; from temper_core.patient_reading import cgroup_owner;"
            f"print(*map(cgroup_owner('/proc'), map(int, '{asked}'.split())))"
        )
        entering = f'echo $$ > {mine}/cgroup.procs && exec unshare -C {sys.executable} -c "{code}"'
        shown = subprocess.run(["sh", "-c", entering], capture_output=True, text=True, check=True)
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
        for directory in (*pods, pods[0].parent, mine, mine.parent, top):
            directory.rmdir()

    owners = shown.stdout.split()
    assert len(set(owners)) == 2
    assert [owner.rpartition("pod")[2] for owner in owners] == [
        f"{POD}.slice",
        f"{OTHER_POD}.slice",
    ]


def test_a_process_that_has_ended_has_no_owner(tmp_path):
    assert cgroup_owner(tmp_path)(7) == ""


def test_without_a_thread_nothing_is_returned_and_the_next_read_tries_again(reader, monkeypatch):
    def no_thread(*_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        assert reader.read(1) is None

    assert reader.read(1) == "text 1"


def test_no_thread_stays_after_the_end(files):
    before = threading.active_count()
    reader = PatientReader(files, wait_s=0.05)
    files.lock(7)
    reader.read(7)
    reader.read(8)

    reader.close()
    files.unlock(7)

    until(lambda: threading.active_count() <= before)
