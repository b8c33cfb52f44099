"""What each node is to be, by the policy and the pods."""

from fractions import Fraction
from types import SimpleNamespace

import pytest
from attrs import evolve
from structlog.testing import capture_logs

from temper_plugin_power.controller.node_loop import NodeLoop
from temper_plugin_power.controller.node_plans import Situations, plan_nodes
from temper_plugin_power.controller.nodes import PROFILE_LABEL, known_node, selects
from temper_plugin_power.controller.pods import pod_reader
from temper_plugin_power.controller.twins import Record, StoredTwin, hardware_of
from temper_plugin_power.operating.caps import CapShares, uncapped_by
from temper_plugin_power.operating.guard import Cause, State
from temper_plugin_power.operating.twin import Hardware
from temper_plugin_power.settings.operator import CapSettings, OperatorSettings
from temper_plugin_power.workloads.owners import Workload
from tests.power.made import a_profile, naming

CPU_LABEL = "feature.node.kubernetes.io/cpu-model.name"
STATIC = OperatorSettings()
QUEUE = OperatorSettings(policy="queue_aware_v1", queue_base_frac=0.0, queue_min=0)
SOME = Record(Hardware(sockets=2, cores=64, max_watts_per_socket=200.0), ("made",), (), 3.0)
GPUS = evolve(SOME, hardware=evolve(SOME.hardware, has_gpu=True, gpus=8), gpu_models=("big",))
read_pod = pod_reader(("joulie.io", "temper.codes"))


def a_node(name, **labels):
    item = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": {"cpu": "64"}}}
    return known_node(item, "")


def a_pod(name, node="n0", *, phase="Running", owner="StatefulSet", spec=(), **annotations):
    item = {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-11-27T00:00:00Z",
            "annotations": {
                f"joulie.io/{key.replace('_', '-')}": annotations[key] for key in annotations
            },
            "ownerReferences": [{"kind": owner, "name": name, "controller": True}],
        },
        "spec": {"nodeName": node, "containers": [{"name": "app"}], **dict(spec)},
        "status": {"phase": phase},
    }
    return read_pod(item)


def seen(nodes=2, pods=(), profiles=None, twins=None, records=None):
    names = [f"n{number}" for number in range(nodes)]
    return Situations(
        nodes=[a_node(name) for name in names],
        twins={
            name: StoredTwin(name, "", "", {"profile": profile}, {})
            for name, profile in (twins or {}).items()
        },
        records=dict.fromkeys(names, SOME) if records is None else records,
        pods=pods,
        profiles={
            Workload("shop", "StatefulSet", name): profile
            for name, profile in (profiles or {}).items()
        },
        min_confidence=0.5,
        now_s=0,
    )


def plan_of(situation, name="n1", settings=STATIC):
    return {plan.node.name: plan for plan in plan_nodes(situation, settings).nodes}[name]


def test_half_of_the_nodes_are_eco_nodes_with_caps():
    plans = plan_nodes(seen(4), STATIC)

    assert [plan.spec["profile"] for plan in plans.nodes] == [
        *("performance", "performance", "eco", "eco")
    ]
    assert plans.nodes[3].spec["cpu"] == {"packagePowerCapPctOfMax": 60.0}
    assert plans.nodes[3].spec["policy"] == {"name": "static-partition-v1"}
    assert plans.nodes[3].twin.schedulable_class == "eco"
    assert plans.nodes[0].twin.schedulable_class == "performance"


def test_a_node_with_gpus_has_a_cap_of_its_gpus_only():
    plan = plan_of(seen(2, records={"n0": GPUS, "n1": GPUS}))

    assert plan.spec["gpu"] == {"powerCap": {"scope": "perGpu", "capPctOfMax": 60.0}}
    assert "cpu" not in plan.spec


def test_a_cap_of_0_is_none():
    settings = evolve(STATIC, caps=CapSettings(cpu_eco_pct=0.0))

    assert "cpu" not in plan_of(seen(), settings=settings).spec


def test_a_percentage_of_0_is_warned_of_once_with_its_setting():
    settings = evolve(STATIC, caps=CapSettings(cpu_eco_pct=0.0, gpu_performance_pct=0.0))
    mixed = seen(6, records={f"n{number}": GPUS if number < 3 else SOME for number in range(6)})
    written = []
    writer = SimpleNamespace(write=lambda plan, _: written.append(plan))
    loop = NodeLoop(lambda: mixed, writer, settings, None, lambda _: None, lambda *_: None)

    with capture_logs() as logs:
        loop.cycle()
        loop.cycle()

    told = [log for log in logs if log["event"] == "node_without_cap"]
    assert {log["setting"].split()[-1] for log in told} == {"cpu_eco_pct", "gpu_performance_pct"}
    assert len(told) == 2
    assert len(written) == 12


@pytest.mark.parametrize(
    ("profile", "has_gpu", "name"),
    [
        ("eco", False, "cpu_eco_pct"),
        ("eco", True, ""),
        ("performance", True, "gpu_performance_pct"),
        ("performance", False, ""),
    ],
)
def test_the_setting_that_leaves_a_node_without_a_cap_is_of_its_device(profile, has_gpu, name):
    shares = CapShares(cpu_eco_pct=0, gpu_performance_pct=-1)

    assert uncapped_by(profile, shares, Hardware(has_gpu=has_gpu)) == name


def test_a_cap_in_watts_is_in_the_state_of_the_node_as_a_percentage():
    settings = evolve(STATIC, caps=CapSettings(cpu_write_absolute=True))

    plan = plan_of(seen(), settings=settings)

    assert plan.spec["cpu"] == {"packagePowerCapWatts": 120.0}
    assert plan.twin.cpu_pct == 60


@pytest.mark.parametrize(
    ("products", "record", "watts"),
    [
        ({}, None, 420),
        ({"NVIDIA-H100-80GB-HBM3": 500.0}, None, 300),
        ({"NVIDIA-H100-80GB-HBM3": 500.0}, 400.0, 240),
        ({"other": 500.0}, None, 420),
    ],
)
def test_the_power_of_gpus_is_that_of_the_record_then_of_the_settings_then_of_the_catalogue(
    products, record, watts
):
    caps = CapSettings(gpu_write_absolute=True, gpu_models=products)
    hardware = evolve(GPUS.hardware, max_watts_per_gpu=record or 0.0)
    known = evolve(GPUS, hardware=hardware, gpu_models=("NVIDIA-H100-80GB-HBM3",))

    plan = plan_of(seen(2, records={"n0": known, "n1": known}), settings=evolve(STATIC, caps=caps))

    assert plan.spec["gpu"]["powerCap"]["capWattsPerGpu"] == watts


def test_a_model_of_the_catalogue_is_known_by_a_label_of_the_node():
    node = a_node("n0", **{CPU_LABEL: "AMD EPYC 9654 96-Core Processor"})

    hardware = hardware_of(node, None)

    assert hardware.max_watts_per_socket == 360
    assert hardware.min_watts_per_socket == pytest.approx(198)


@pytest.mark.parametrize(
    ("modes", "intensities", "mode"),
    [
        (("mig",), ("low", "low"), "mig"),
        (("time-slicing",), ("low", "low"), None),
        (("time-slicing",), (), "time-slicing"),
        (("mig",), ("high",), "none"),
        ((), (), None),
    ],
)
def test_gpus_are_advised_to_be_shared_in_ways_that_the_node_has(modes, intensities, mode):
    record = evolve(GPUS, slicing_modes=modes)
    names = [f"p{number}" for number in range(len(intensities))]
    profiles = {name: a_profile(gpu=level) for name, level in zip(names, intensities, strict=True)}
    pods = [a_pod(name, "n1") for name in names]

    plan = plan_of(seen(2, pods, profiles, records={"n0": record, "n1": record}))

    assert (plan.slicing.mode if plan.slicing else None) == mode


def test_a_node_without_gpus_has_no_advice_to_share_them():
    assert plan_of(seen()).slicing is None


def test_nodes_without_a_record_are_families_of_their_own_and_stay():
    plans = plan_nodes(seen(4, records={}), STATIC)

    assert {plan.spec["profile"] for plan in plans.nodes} == {"performance"}


@pytest.mark.parametrize(
    ("pod", "profile", "cause"),
    [
        (a_pod("a", "n1"), None, None),
        (a_pod("a", "n1", workload_class="performance"), None, Cause.CONSTRAINT),
        (a_pod("a", "n1", reschedulable="false"), None, Cause.NOT_MOVABLE),
        (a_pod("a", "n1", reschedulable="true"), None, None),
        (a_pod("a", "n1"), a_profile("performance"), Cause.CONSTRAINT),
        (a_pod("a", "n1"), a_profile(hints=None), Cause.NOT_MOVABLE),
        (a_pod("a", "n1"), a_profile(hints=()), None),
        (a_pod("a", "n1", owner="DaemonSet", reschedulable="false"), None, None),
        (a_pod("a", "n1", spec=naming("n1"), reschedulable="false"), None, None),
        (a_pod("a", "n1", phase="Pending", reschedulable="false"), None, None),
        (a_pod("a", "n0", reschedulable="false"), None, None),
        (
            a_pod("a", "n1", spec={"nodeSelector": {PROFILE_LABEL: "performance"}}),
            None,
            Cause.CONSTRAINT,
        ),
    ],
)
def test_only_pods_that_would_suffer_keep_a_node(pod, profile, cause):
    profiles = {} if profile is None else {"a": profile}

    plan = plan_of(seen(pods=[pod], profiles=profiles))

    assert dict(plan.blocking) == ({} if cause is None else {cause: 1})
    assert plan.transition.state is (State.ECO if cause is None else State.DRAINING)
    assert plan.spec["profile"] == ("eco" if cause is None else "performance")
    assert plan.spec["scheduling"]["draining"] == (cause is not None)


def test_caps_come_with_the_last_pod_and_not_before():
    blocked = a_pod("a", "n1", reschedulable="false")
    draining = plan_of(seen(pods=[blocked]))
    done = plan_of(seen(pods=[], twins={"n1": "performance"}))

    assert draining.spec["cpu"] == {"packagePowerCapPctOfMax": 100.0}
    assert draining.twin.schedulable_class == "draining"
    assert done.spec["cpu"] == {"packagePowerCapPctOfMax": 60.0}


@pytest.mark.parametrize(
    ("in_force", "profile", "state"),
    [("performance", "performance", State.DRAINING), ("eco", "eco", State.ECO)],
)
def test_without_the_pods_no_node_is_downgraded(in_force, profile, state):
    plan = plan_of(seen(pods=None, twins={"n1": in_force}))

    assert (plan.spec["profile"], plan.transition.state) == (profile, state)


@pytest.mark.parametrize(("intensity", "nodes"), [("medium", 2), ("high", 3), ("low", 1)])
def test_demand_is_weighted_by_intensity(intensity, nodes):
    pods = [a_pod(f"p{number}", workload_class="performance") for number in range(14)]
    profiles = {f"p{number}": a_profile(cpu=intensity) for number in range(14)}

    plans = plan_nodes(seen(9, pods=pods, profiles=profiles), QUEUE)

    assert plans.performance_nodes == nodes


@pytest.mark.parametrize(("counts", "demand"), [(True, 1), (False, 0)])
def test_pods_in_the_queue_are_demand(counts, demand):
    pods = [a_pod("a", "", phase="Pending", workload_class="performance")]
    settings = evolve(QUEUE, queue_count_pending=counts)

    assert plan_nodes(seen(pods=pods), settings).demand == Fraction(demand)


def test_pods_that_may_be_moved_are_known():
    pods = [
        a_pod("says", "n1", reschedulable="true"),
        a_pod("silent", "n1"),
        a_pod("bound", "n1", owner="DaemonSet", reschedulable="true"),
        a_pod("named", "n1", spec=naming("n1"), reschedulable="true"),
    ]

    (movable,) = plan_of(seen(pods=pods)).movable

    assert movable.workload.name == "says"


@pytest.mark.parametrize(
    ("selector", "labels", "is_selected"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a=b", {"a": "c"}, False),
        ("a=b", {}, False),
        ("a=b,c=d", {"a": "b"}, False),
        ("a=b,c=d", {"a": "b", "c": "d"}, True),
    ],
)
def test_a_selector_selects_nodes(selector, labels, is_selected):
    assert selects(selector, labels) is is_selected


@pytest.mark.parametrize(("changes", "is_eligible"), [({}, True), ({"unschedulable": True}, False)])
def test_a_node_that_takes_no_pods_is_not_counted(changes, is_eligible):
    node = known_node({"metadata": {"name": "n"}, "spec": changes}, "")

    assert node.is_eligible is is_eligible


def test_a_reserved_node_is_not_counted():
    assert not a_node("n", **{"joulie.io/reserved": "true"}).is_eligible
