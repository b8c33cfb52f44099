"""The threads of a pod as ``explain`` lists them."""

from temper_core.agent.pod_threads import pod_threads
from temper_core.records.plans import LayerPlan
from temper_core.records.steering import NO_HINT, Scope, ScopeKind, SteeredPlace, SteeringRule
from temper_core.steering.kernel_records import IS_DECIDED, IS_LEADER, NO_LAYER, THREAD
from temper_core.steering.scopes import place_cgroups
from temper_core.steering.truth import Truths
from temper_core.testing import make_machine, make_snapshot, make_thread

HINTS = {"high": 4, "open": 2}
LAYERS = ("high", "open")
POD = SteeredPlace(Scope(ScopeKind.PATH, "pod"), (SteeringRule("high"),), "shop/web")
NAMED = SteeredPlace(Scope(ScopeKind.PROCESS, "mysqld"), (SteeringRule("high"),), "db")
INODES = {"": 1, "pod": 2, "pod/c": 3, "other": 4}


def record(tid, cgroup, **changes):
    fields = {
        "tid": tid, "tgid": tid, "start": 9, "cgroup": cgroup, "run": 5, "expected": 4, "hint": 4,
        "layer": 0, "flags": 0, "comm": b"worker",
    }  # fmt: skip
    return THREAD.pack(*{**fields, **changes}.values())


def truth_of(*records):
    plan = LayerPlan(make_machine(), (), hints=HINTS, steering=(POD, NAMED))
    names = {hint: name for name, hint in HINTS.items()}
    return Truths(plan, place_cgroups(plan, INODES), b"".join(records), names, LAYERS)


def test_threads_of_the_pods_cgroups_are_listed_and_no_others():
    truth = truth_of(record(10, 2), record(11, 3), record(12, 4))

    listed = pod_threads("shop/web", truth, None, 10)

    assert [row["tid"] for row in listed] == [10, 11]
    assert listed[0] == {
        "tid": 10,
        "tgid": 10,
        "comm": "worker",
        "expected_layer": "high",
        "hinted_layer": "high",
        "layer": "high",
        "layer_is_known": True,
        "is_decided": False,
        "is_astray": False,
        "cpu_used": 0.0,
    }


def test_those_astray_come_first_and_then_the_busiest():
    truth = truth_of(record(10, 2), record(11, 2, layer=1), record(12, 2), record(13, 2))
    busy = make_snapshot(make_thread("a", tid=12, cpu_used=0.5), make_thread("b", tid=13))

    listed = pod_threads("shop/web", truth, busy, 3)

    assert [row["tid"] for row in listed] == [11, 12, 13]
    assert [row["is_astray"] for row in listed] == [True, False, False]


def test_a_thread_that_the_engine_has_not_placed_is_not_astray():
    rows = (record(10, 2, layer=NO_LAYER), record(11, 2, layer=16, hint=NO_HINT))

    unknown, unplaced = pod_threads("shop/web", truth_of(*rows), None, 10)

    for row in (unknown, unplaced):
        assert (row["layer"], row["layer_is_known"], row["is_astray"]) == ("", False, False)
    assert unplaced["hinted_layer"] == ""


def test_a_hint_of_no_layer_is_told_by_its_number():
    [row] = pod_threads("shop/web", truth_of(record(10, 2, hint=99, flags=IS_DECIDED)), None, 10)

    assert (row["hinted_layer"], row["is_decided"]) == ("hint 99", True)


def test_a_workload_known_by_its_process_is_found_by_its_leaders_name():
    truth = truth_of(
        record(20, 4, flags=IS_LEADER, comm=b"mysqld"),
        record(21, 4, tgid=20, comm=b"ib_io"),
        record(22, 4, flags=IS_LEADER, comm=b"nginx"),
    )

    assert [row["tid"] for row in pod_threads("db", truth, None, 10)] == [20, 21]


def test_without_the_kernels_word_those_that_ran_are_listed_as_inferred():
    mine = make_thread("a", tid=5, namespace="shop", pod="web", layer="high", cpu_used=0.25)
    other = make_thread("b", tid=6, namespace="shop", pod="db")

    [row] = pod_threads("shop/web", None, make_snapshot(mine, other), 10)

    assert (row["tid"], row["layer"], row["layer_is_known"]) == (5, "high", False)
    assert row["cpu_used"] == 0.25


def test_before_anything_was_seen_there_are_none():
    assert pod_threads("shop/web", None, None, 10) == []


def test_truths_are_a_mapping_by_tid():
    truth = truth_of(record(10, 2), record(12, 4))

    assert sorted(truth) == [10, 12]
    assert len(truth) == 2
    assert truth[12].cgroup_id == 4
    assert truth.get(13) is None
