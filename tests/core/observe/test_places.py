import pytest

from temper_core.observe.places import MOST_REMEMBERED, NOWHERE, Places, remember
from temper_core.observe.thread_rows import ThreadRow
from temper_core.records.engine_matchers import Matcher
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.pods import Container, Origin, Pod
from temper_core.records.tiers import LayerKind, Tier

SLICE = "kubepods.slice/kubepods-pod1.slice/"
ID = "4f" * 32


def pod(name, *cgroups, uid=None, **fields):
    return Pod(uid=uid or name, namespace="shop", name=name, cgroups=cgroups, **fields)


def plan_of(*pods, layers=()):
    assignments = tuple(Assignment(each, Tier.HIGH, "test") for each in pods)
    return LayerPlan(MachineShape.uniform(4), layers, assignments)


def row(comm="work", cgroup=SLICE, **changes):
    fields = {"tid": 8, "tgid": 7, "process": "work", "start_ticks": 1, "cpu": 0, "run_ns": 1}
    fields |= {"delay_ns": 0, "is_kthread": False, "uid": 0}
    return ThreadRow(comm=comm, cgroup=cgroup, **{**fields, **changes})


@pytest.mark.parametrize(
    ("cgroup", "found"),
    [
        (SLICE, "db"),
        (f"{SLICE}cri-containerd-{ID}.scope/", "db"),
        (f"{SLICE}a/b/c/d/", "db"),
        (f"{SLICE}inner/x/", "inner"),
        ("kubepods.slice/", ""),
        ("kubepods.slice/kubepods-pod1.slice2/", ""),
        ("/", ""),
        ("", ""),
    ],
)
def test_the_longest_prefix_that_is_a_pods_cgroup_names_the_pod(cgroup, found):
    places = Places(plan_of(pod("db", SLICE), pod("inner", f"{SLICE}inner/")))

    assert places.of(cgroup, "work").pod == found
    assert places.of(cgroup, "work") is places.of(cgroup, "work")


@pytest.mark.parametrize("runtime_id", [ID, f"containerd://{ID}"])
def test_a_container_is_named_by_its_id_in_the_path(runtime_id):
    containers = (Container("sidecar", runtime_id="99"), Container("main", runtime_id=runtime_id))
    places = Places(plan_of(pod("db", SLICE, containers=containers)))

    inside = places.of(f"{SLICE}cri-containerd-{ID}.scope/", "work")

    assert (inside.container, inside.namespace, inside.tier) == ("main", "shop", Tier.HIGH)
    assert places.of(SLICE, "work").container == ""


def test_a_container_without_an_id_claims_no_thread():
    places = Places(plan_of(pod("db", SLICE, containers=(Container("main"),))))

    assert places.of(f"{SLICE}x/", "work").container == ""


def test_a_workload_without_a_cgroup_is_known_by_its_process():
    containers = (Container("run", processes=("a-very-long-process-name",)),)
    workload = pod("batch", containers=containers, origin=Origin.WORKLOAD)
    unit = pod("unit", "system.slice/x.service/", origin=Origin.UNIT)
    asked = pod("srch", "temper.slice/run-srch@critical@/", origin=Origin.WORKLOAD)
    places = Places(plan_of(workload, pod("db", SLICE), unit, asked))

    assert places.of("/", "a-very-long-pro").pod == "batch"
    assert places.of("system.slice/x.service/", "a-very-long-pro").pod == "batch"
    assert places.of("temper.slice/run-srch@critical@/", "a-very-long-pro").pod == "srch"
    assert places.of(SLICE, "work").pod == "db"
    assert places.of(SLICE, "a-very-long-pro").pod == "db"  # whose author chose that name
    assert places.of("/", "work") is NOWHERE


def test_a_pods_cgroups_are_counted_once_where_they_lie_in_each_other():
    places = Places(plan_of(pod("db", f"{SLICE}a/", SLICE, "other/", f"{SLICE}a/b/")))

    assert places.pods == {"db": (SLICE, "other/")}


def test_the_wanted_layer_is_the_plans_for_that_very_thread():
    layers = (
        Layer("io", LayerKind.GROUPED, ((Matcher("CommPrefix", "io_"),),)),
        Layer("leaders", LayerKind.GROUPED, ((Matcher("IsGroupLeader", True),),)),
        Layer("pods", LayerKind.GROUPED, ((Matcher("CgroupPrefix", SLICE),),)),
    )
    places = Places(plan_of(pod("db", SLICE), layers=layers))

    wanted = [
        places.seat_of(each)[1]
        for each in (row("io_1"), row("x", tid=7), row("x"), row("x", cgroup="else/"), row("io_2"))
    ]

    assert wanted == ["io", "leaders", "pods", "", "io"]


def test_without_a_plan_nothing_is_known():
    places = Places(None)

    assert places.of(SLICE, "work") is NOWHERE
    assert places.seat_of(row()) == (NOWHERE, "")
    assert places.pods == {}


def test_answers_to_questions_without_end_do_not_fill_the_memory():
    answers = {}

    for number in range(MOST_REMEMBERED + 10):
        remember(answers, f"name-{number}", "all")

    assert len(answers) == 10
    assert answers[f"name-{MOST_REMEMBERED + 9}"] == "all"
