"""Pods, users and services keep their rows and places, whatever one of them does."""

import subprocess
import time

import pytest

from tests.core.observe.kernel_side.proc_reads import WORKERS

DETAIL = 256
WAITERS = 400
PLACES = 12
LEVELS = 40
"""More than the kernel side follows upwards."""
JOIN = 'echo $$ > "$1"; exec python3 -c "$2" "$3"'
STORM = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def wait():
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True: pass
for _ in range(int(sys.argv[1])):
    if os.fork() == 0: wait()
print('up', flush=True)
while True: pass
"""
"""One that spins, and others on its CPU that wait for the CPU nearly all the time."""


@pytest.fixture
def storm(make_cgroup):
    """Start a storm of waiting threads in the cgroup of a pod. Gives its path."""
    started = []

    def start(name):
        folder = make_cgroup(name)
        child = subprocess.Popen(
            ["sh", "-c", JOIN, "sh", str(folder / "cgroup.procs"), STORM, str(WAITERS)],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append((child, folder))
        assert child.stdout.readline() == "up\n"

    yield start
    for child, folder in started:
        (folder.parent / "cgroup.kill").write_text("1")
        child.wait()
        child.stdout.close()


def test_threads_of_one_pod_that_wait_leave_rows_to_the_threads_of_another(
    open_tier, spawn_in, storm, tell, settle
):
    child, path = spawn_in(WORKERS, 1, name="pod-victim/one")
    reader = open_tier(DETAIL)
    storm("pod-storm/one")
    reader.snapshot(0)
    base = reader.snapshot(reader.snapshot(0).clock_ns)
    tell(child, "200 0")
    settle(child.pid)
    time.sleep(0.5)

    rows = reader.snapshot(base.clock_ns)

    assert len(rows.rows) <= DETAIL
    assert any(row.cgroup == path and row.run_ns >= 200_000_000 for row in rows.rows)
    assert sum("pod-storm" in row.cgroup for row in rows.rows) < DETAIL


def test_containers_of_one_pod_compete_as_one(open_tier, make_cgroup, storm):
    reader = open_tier(DETAIL)
    storm("pod-storm/one")
    pids = [int(pid) for pid in (make_cgroup("pod-storm/one") / "cgroup.procs").read_text().split()]
    for number, pid in enumerate(pids):
        (make_cgroup(f"pod-storm/c{number % 100}") / "cgroup.procs").write_text(str(pid))
    base = reader.snapshot(0)
    time.sleep(1.0)

    rows = reader.snapshot(base.clock_ns)

    assert 0 < sum("pod-storm" in row.cgroup for row in rows.rows) < DETAIL


@pytest.mark.parametrize("below", ["", "/a" * LEVELS], ids=["flat", "deep"])
def test_cgroups_of_one_pod_leave_places_to_the_pods_that_come_later(
    open_tier, unified, make_cgroup, spawn_in, below
):
    places = len(open_tier().snapshot(0).threads_by_cgroup)

    class Cramped(open_tier.kind):
        most_groups = places + PLACES
        most_of_owner = 4

    sleepers = []
    for number in range(2 * PLACES):
        folder = make_cgroup(f"pod-many/{number}{below}")
        sleepers.append(subprocess.Popen(["sleep", "600"]))
        (folder / "cgroup.procs").write_text(str(sleepers[-1].pid))
    _, path = spawn_in(WORKERS, 3, name="pod-later/one")

    rows = open_tier(kind=Cramped, unified_root=str(unified)).snapshot(0)

    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait()
    top = path.removesuffix("pod-later/one/")
    assert rows.threads_by_cgroup[path] == 4
    assert rows.threads_by_cgroup[f"{top}pod-many/"] == 2 * PLACES - 4
    assert rows.defects == ()
