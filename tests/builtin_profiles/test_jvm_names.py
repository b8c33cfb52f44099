"""How Java cuts the names of its threads: at the end, and in the middle from JDK 26 on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.profiles.matching import matches
from temper_core.records.threads import ThreadIdentity
from tests.builtin_profiles.recorded import PACKS

LONGEST = 15
GROUPS = {
    "http-nio-8080-exec-{}": "requests",
    "http-nio-8080-Poller": "requests",
    "https-jsse-nio-8443-exec-{}": "requests",
    "https-openssl-nio-8443-exec-{}": "requests",
    "qtp661672156-{}": "requests",
    "ForkJoinPool-1-worker-{}": "requests",
    "GC Thread#{}": "collection",
    "VM Thread": "collection",
    "ZWorker#{}": "collection",
    "ZWorkerYoung#{}": "collection",
    "Shenandoah GC Threads#{}": "collection",
    "ZWorkerOld#{}": "collection",
    "G1 Conc#{}": "collection",
    "G1 Refinement Workers#{}": "collection",
    "G1 Main Marker": "collection",
    "C1 CompilerThread{}": "warm-up",
    "C2 CompilerThread{}": "warm-up",
    "Common-Cleaner": "rest",
    "VM Periodic Task Thread": "rest",
    "pool-1-thread-{}": "rest",
}
INDICES = st.integers(0, 9_999)


def cut(name):
    return name[:LONGEST]


def shortened(name):
    """Keep the ends of a long name, as os::Linux::set_native_thread_name does since JDK 26."""
    return name if len(name) <= LONGEST else f"{name[:7]}..{name[-6:]}"


def group_of(comm, process="java"):
    thread = ThreadIdentity(cgroup="pod/", comm=comm, process=process)
    groups = PACKS["jvm"].thread_groups
    return next(
        group.name
        for group in groups
        if not group.match or any(matches(match, thread) for match in group.match)
    )


@pytest.mark.parametrize("name", GROUPS)
@settings(max_examples=20, deadline=None)
@given(index=INDICES)
def test_a_thread_has_one_group_in_either_spelling_and_whatever_its_number(name, index):
    full = name.format(index)

    assert {group_of(cut(full)), group_of(shortened(full))} == {GROUPS[name]}


@settings(max_examples=20, deadline=None)
@given(index=INDICES)
def test_the_common_pool_is_told_from_carriers_only_where_the_name_is_cut_at_its_end(index):
    full = f"ForkJoinPool.commonPool-worker-{index}"

    assert group_of(cut(full)) == "rest"
    assert group_of(shortened(full)) == "requests"


@pytest.mark.parametrize("name", GROUPS)
def test_no_group_takes_threads_of_another_program(name):
    assert group_of(cut(name.format(1)), process="sidecar") == "rest"
