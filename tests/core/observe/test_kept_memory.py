"""What is kept of threads that come and go all day, each under a name of its own."""

import gc
import tracemalloc
from itertools import count

import pytest

from temper_core import parse_profile
from temper_core.observe.observer import Observer
from temper_core.observe.profile_coverage import ProfileCoverage
from temper_core.observe.thread_rows import ThreadRow, ThreadRows
from temper_core.plan import ProfileCatalogue, decide
from temper_core.records.pods import Container
from temper_core.records.profiles import LoadedProfile
from temper_core.records.snapshots import Mode, Status
from temper_core.settings.models import Settings
from temper_core.testing import make_machine, make_pod, make_thread
from tests.tracer.people import PLAN

MIB = 1 << 20
MACHINE = make_machine(8)
ENFORCING = Status(Mode.ENFORCING)
A_LOOKS_ROWS = 256
LOOKS = 100
PROFILE = """
id = "db"
fingerprint.images = ["db:*"]
[[thread_groups]]
name = "jobs"
match = [{ comm_prefix = "job" }]
treatment = "latency"
"""


class Strangers:
    """A reader to whom every thread is new at every look."""

    tier = "bpf"

    def __init__(self):
        self._numbers = count(1_000)

    def snapshot(self, since):
        rows = [
            ThreadRow(tid, tid, f"job-{tid}", f"job-{tid}", tid, 0, 1_000_000, 0, False, 0, "pods/")
            for tid, _ in zip(self._numbers, range(A_LOOKS_ROWS), strict=False)
        ]
        return ThreadRows(since + 1, tuple(rows), len(rows))

    def refresh_cgroups(self):
        """Do nothing."""

    def close(self):
        """Do nothing."""


@pytest.fixture
def traced():
    """Count what Python has allocated since the beginning of the test."""

    def held():
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    yield held
    tracemalloc.stop()


def test_an_observer_of_ever_new_threads_keeps_only_so_much_of_them(traced):
    observer = Observer(MACHINE, Settings(), node="here", threads=Strangers())
    observer.tick(plan=PLAN, status=ENFORCING)
    before = traced()

    most = 0
    for _ in range(LOOKS):
        observer.tick(plan=PLAN, status=ENFORCING)
        most = max(most, tracemalloc.get_traced_memory()[0])
    observer.close()

    assert most - before < 2.5 * MIB


def test_verdicts_on_ever_new_threads_of_a_pod_are_kept_for_so_many_of_them(traced):
    profile = LoadedProfile(parse_profile(PROFILE, "db.toml"), "db.toml")
    pod = make_pod("a", priority=100_000, containers=(Container("main", "db:1"),))
    plan = decide([pod], ProfileCatalogue((profile,)), MACHINE, Settings())
    coverage = ProfileCoverage()
    coverage.of(plan, [thread_of_a(0)])
    before = traced()

    covered = [coverage.of(plan, [thread_of_a(tid)]) for tid in range(5_000)]

    assert covered[-1] == {("default", "a"): 1.0}
    covered.clear()
    assert traced() - before < 0.25 * MIB


def thread_of_a(tid):
    return make_thread(
        comm=f"job-{tid}", process="db", namespace="default", pod="a", container="main", cpu_used=1
    )
