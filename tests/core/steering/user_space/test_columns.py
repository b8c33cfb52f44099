"""Which records of a walk are spelt out."""

import os

import pytest

from temper_core.records.steering import NO_HINT
from temper_core.steering.columns import Wanted, at_rest, key_of, pick, record_at, tids
from temper_core.steering.kernel import SteeringKernel
from temper_core.steering.kernel_records import (
    IS_DECIDED,
    IS_KERNEL,
    IS_LEADER,
    IS_RUNNABLE,
    IS_UNKNOWN,
    NO_LAYER,
    THREAD,
)

HINTS = {"system": 1, "open": 2, "high": 4}
LAYERS = ("high", "system", "open")
RESTING = at_rest(HINTS, LAYERS)


AS_IT_SHOULD_BE = {
    "tid": 10, "tgid": 10, "start": 1, "cgroup": 7, "run": 5, "expected": 4, "hint": 4, "layer": 0,
    "flags": 0, "comm": b"name",
}  # fmt: skip


def record(**changes):
    return THREAD.pack(*{**AS_IT_SHOULD_BE, **changes}.values())


def picked(*records, **more):
    return [found.tid for found in pick(b"".join(records), Wanted(RESTING, **more))]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"flags": IS_RUNNABLE | IS_LEADER},
        {"expected": 1, "hint": 1, "layer": 1},
        {"layer": NO_LAYER, "flags": IS_UNKNOWN},
        {"layer": 16},
        {"flags": IS_DECIDED | IS_LEADER},
        {"expected": NO_HINT, "hint": NO_HINT, "layer": 1, "flags": IS_KERNEL | IS_LEADER},
        {"expected": NO_HINT, "hint": NO_HINT, "layer": NO_LAYER, "flags": IS_KERNEL | IS_UNKNOWN},
    ],
)
def test_a_thread_that_is_where_it_belongs_is_at_rest(given):
    assert picked(record(**given)) == []


@pytest.mark.parametrize(
    "given",
    [
        {"layer": 2},
        {"hint": 2, "layer": 2},
        {"expected": 2},
        {"hint": NO_HINT},
        {"expected": 99, "hint": 99},
    ],
)
def test_a_thread_that_is_elsewhere_is_not(given):
    assert picked(record(), record(tid=11, **given)) == [11]


def test_threads_of_cgroups_and_processes_are_picked_wherever_they_are():
    records = (record(), record(tid=11, cgroup=8), record(tid=12, tgid=12), record(tid=13))

    assert picked(*records, cgroups={8}, processes={12}) == [11, 12]


def test_threads_of_cgroups_that_are_settled_are_left_out_until_they_change():
    old = record(tid=11, cgroup=8)
    [settled] = pick(old, Wanted(RESTING, cgroups={8}))
    later = [record(tid=11, cgroup=8, run=99, flags=IS_RUNNABLE), record(tid=11, cgroup=8, start=2)]
    renamed = record(tid=11, cgroup=8, comm=b"other")

    for given, is_picked in ((old, 0), (later[0], 0), (later[1], 1), (renamed, 1)):
        found = picked(given, cgroups={8}, settled={key_of(settled)})
        assert len(found) == is_picked


def test_what_user_space_decided_can_be_asked_for():
    assert picked(record(), record(tid=11, flags=IS_DECIDED), decided=True) == [11]


def test_without_an_engine_hints_are_all_that_counts():
    resting = at_rest(HINTS, ())
    records = record(layer=NO_LAYER, flags=IS_UNKNOWN) + record(
        tid=11, hint=2, layer=NO_LAYER, flags=IS_UNKNOWN
    )

    assert [found.tid for found in pick(records, Wanted(resting))] == [11]


def test_records_are_found_by_their_place():
    content = record() + record(tid=0xFFFF_FFFE, cgroup=8)

    assert tids(content) == [10, 0xFFFF_FFFE]
    assert record_at(content, 1).cgroup_id == 8


def test_a_real_walk_has_few_threads_that_need_anything(bpf_allowed):  # noqa: ARG001
    with SteeringKernel.open() as kernel:
        kernel.set_table({}, (), 2)
        kernel.walk()
        kernel.walk()
        content = kernel.content()

    assert os.getpid() in tids(content)
    assert len(list(pick(content, Wanted(at_rest(HINTS, ()))))) < len(tids(content)) / 10
