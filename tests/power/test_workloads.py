"""From pods and their measures to workloads, signals and objects."""

import json
from datetime import UTC, datetime

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from temper_core import Container, Pod
from temper_plugin_power.workloads.energy import Dialect, nodes_of_one_ratio
from temper_plugin_power.workloads.owners import Workload, workload_of
from temper_plugin_power.workloads.pods import MeasuredPod, PodMeasures
from temper_plugin_power.workloads.profiling import profile_workloads

NOW = datetime(2026, 11, 26, 8, 15, 4, tzinfo=UTC)
GIB = 1 << 30


def a_pod(name="web-0", node="n1", created_at="", owner="StatefulSet/web", **measures):
    """Return a pod that requests two CPUs and is limited to 1 GiB."""
    pod = Pod(
        uid=name,
        namespace="shop",
        name=name,
        owner=owner,
        cpu_request_millis=2000,
        containers=(Container("app", memory_limit_bytes=GIB),),
    )
    return MeasuredPod(pod, node, created_at, PodMeasures(**measures))


def with_pod(pod, **changes):
    return evolve(pod, pod=evolve(pod.pod, **changes))


def profiled(*pods, dialect=Dialect.NONE, **options):
    return profile_workloads(pods, dialect=dialect, window_s=600, **options)


def status_of(*pods, **options):
    """Return the status of the only workload of *pods*."""
    (profile,) = profiled(*pods, **options)
    return profile.as_object(NOW)["status"]


@pytest.mark.parametrize(
    ("owner", "labels", "kind", "name"),
    [
        ("", {}, "Pod", "web-0"),
        ("StatefulSet/web", {}, "StatefulSet", "web"),
        ("DaemonSet/web", {}, "DaemonSet", "web"),
        ("ReplicaSet/web-5d9", {"pod-template-hash": "5d9"}, "Deployment", "web"),
        ("ReplicaSet/web-5d9", {"pod-template-hash": "777"}, "ReplicaSet", "web-5d9"),
        ("ReplicaSet/web-5d9", {}, "ReplicaSet", "web-5d9"),
        ("ReplicaSet/-5d9", {"pod-template-hash": "5d9"}, "ReplicaSet", "-5d9"),
        ("Job/report-29400000", {}, "CronJob", "report"),
        ("Job/report", {}, "Job", "report"),
        ("Node/n1", {}, "Pod", "web-0"),
        ("Rollout/web", {}, "Pod", "web-0"),
    ],
)
def test_a_pod_belongs_to_its_top_controller(owner, labels, kind, name):
    pod = with_pod(a_pod(owner=owner), labels=labels).pod

    assert workload_of(pod) == Workload("shop", kind, name)


def test_a_long_name_is_hashed_so_that_no_two_workloads_share_an_object():
    first, second = (Workload("shop", "Deployment", "x" * 250 + end) for end in "ab")

    assert len(first.object_name) == 253
    assert first.object_name != second.object_name
    assert len(first.label_value) == 63
    assert first.label_value != second.label_value


def test_an_object_has_the_form_of_the_resource():
    pods = [
        a_pod("web-0", cpu_rate=1, mem_working_set=GIB / 4),
        a_pod("web-1", cpu_rate=2, mem_working_set=GIB / 4),
    ]

    (profile,) = profiled(*pods)

    assert profile.as_object(NOW) == {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "WorkloadProfile",
        "metadata": {
            "name": "statefulset-web",
            "namespace": "shop",
            "labels": {"joulie.io/workload-kind": "StatefulSet", "joulie.io/workload-name": "web"},
        },
        "spec": {
            "nodeName": "n1",
            "workloadRef": {"kind": "StatefulSet", "namespace": "shop", "name": "web"},
        },
        "status": {
            "criticality": {"class": "standard"},
            "migratability": {"reschedulable": False},
            "cpu": {
                "intensity": "high",
                "bound": "compute",
                "avgUtilizationPct": 75.0,
                "capSensitivity": "high",
            },
            "gpu": {
                "intensity": "none",
                "bound": "none",
                "avgUtilizationPct": 0.0,
                "capSensitivity": "none",
            },
            "classificationReason": "cpu-intensity=high (util 75%≥75%); "
            "cpu-bound=compute, cap-sensitivity=high (util 75%>70%)",
            "confidence": 0.5,
            "lastUpdated": "2026-11-26T08:15:04Z",
            "hints": [],
            "evidence": {
                "pods": 2,
                "windowSeconds": 600,
                "memoryPressurePct": 25.0,
                "dialect": "none",
                "energyBound": "none",
            },
        },
    }


@pytest.mark.parametrize(("nodes", "shared"), [("aa", "a"), ("ab", ""), (["a", ""], "a")])
def test_the_node_is_named_if_all_pods_share_it(nodes, shared):
    (profile,) = profiled(*(a_pod(f"web-{place}", node) for place, node in enumerate(nodes)))

    assert profile.node == shared


def test_the_newest_pod_gives_the_hints():
    key = "joulie.io/workload-class"
    old, new = a_pod("web-9", created_at="2026-01-01T"), a_pod("web-0", created_at="2026-01-02T")

    status = status_of(
        with_pod(new, annotations={key: "performance"}), with_pod(old, annotations={key: "gold"})
    )

    assert status["criticality"]["class"] == "performance"


def test_namespaces_of_kubernetes_have_no_profiles():
    assert profiled(with_pod(a_pod(), namespace="kube-system")) == []


@pytest.mark.parametrize("measures", [{}, {"cpu_rate": 0, "mem_working_set": 0}, {"cycles": 5}])
def test_a_workload_of_which_nothing_is_measured_follows_from_its_hints(measures):
    status = status_of(a_pod(**measures))

    assert status["classificationReason"] == "hints only (no metrics available)"
    assert status["confidence"] == 0.3


def test_the_limit_stands_in_for_a_request():
    pod = with_pod(a_pod(cpu_rate=1), cpu_request_millis=0, cpu_limit_millis=4000)

    assert status_of(pod)["cpu"]["avgUtilizationPct"] == 25


def test_without_request_and_limit_the_utilisation_is_unknown_and_not_low():
    status = status_of(with_pod(a_pod(cpu_rate=1), cpu_request_millis=0))

    assert status["cpu"] == {"intensity": "medium", "bound": "mixed", "capSensitivity": "medium"}
    assert status["classificationReason"] == "cpu-util unknown (no request, no limit)"
    assert status["confidence"] == 0.3


def test_usage_above_the_request_is_a_full_hundred():
    assert status_of(a_pod(cpu_rate=9))["cpu"]["avgUtilizationPct"] == 100


def test_a_pod_without_measures_dilutes_no_utilisation():
    assert status_of(a_pod(cpu_rate=1), a_pod("web-1"))["cpu"]["avgUtilizationPct"] == 50


def test_without_a_memory_limit_there_is_no_pressure():
    pod = with_pod(a_pod(cpu_rate=1, mem_working_set=GIB), containers=(Container("app"),))

    assert status_of(pod)["evidence"]["memoryPressurePct"] == 0


def test_gpu_utilisation_is_averaged_and_a_dominant_gpu_is_found():
    status = status_of(a_pod(dcgm_gpu_util=90, cpu_rate=0.2), a_pod("web-1", dcgm_gpu_util=80))

    assert status["gpu"]["avgUtilizationPct"] == 85
    assert "cpu-bound=mixed (GPU dominant)" in status["classificationReason"]


@pytest.mark.parametrize(
    ("measures", "util"),
    [
        ({"kepler_gpu_rate": 100}, 25),
        ({"kepler_gpu_rate": 900}, 100),
        ({"kepler_gpu_rate": 100, "dcgm_gpu_util": 7}, 7),
    ],
)
def test_the_power_of_a_gpu_stands_in_for_its_utilisation(measures, util):
    status = status_of(a_pod(**measures), dialect=Dialect.OLD)

    assert status["gpu"]["avgUtilizationPct"] == util


@pytest.mark.parametrize(
    ("used", "pressure", "rates", "bound", "says"),
    [
        (1.2, 0.2, (80, 20), "compute", "compute"),
        (1.1, 0.2, (80, 20), "mixed", "none"),
        (1.2, 0.6, (55, 45), "memory", "memory"),
        (1.2, 0.5, (55, 45), "mixed", "none"),
        (1.2, 0.2, (70, 30), "mixed", "none"),
        (1.2, 0.6, (60, 40), "mixed", "none"),
        (1.2, 0.2, (80, 0), "mixed", "unknown"),
        (1.2, 0.2, (80, None), "mixed", "unknown"),
    ],
)
def test_the_old_dialect_says_what_a_workload_is_bound_by(used, pressure, rates, bound, says):
    package, dram = rates
    pod = a_pod(
        cpu_rate=used,
        mem_working_set=pressure * GIB,
        kepler_package_rate=package,
        kepler_dram_rate=dram,
    )

    status = status_of(pod, dialect=Dialect.OLD)

    assert status["cpu"]["bound"] == bound
    assert ("kepler override" in status["classificationReason"]) == (bound != "mixed")
    assert status["evidence"]["energyBound"] == says
    assert status["evidence"]["packageWatts"] == package
    assert status["confidence"] == 0.7


UNKNOWN = "energy: cpu-bound unknown (zones shared by CPU time)"


def test_zones_of_one_ratio_say_nothing_of_two_pods_of_different_nature():
    hot = a_pod("hot", owner="", cpu_rate=1.9, kepler_package_rate=95, kepler_dram_rate=19)
    idle = a_pod("idle", owner="", cpu_rate=0.5, kepler_package_rate=25, kepler_dram_rate=5)

    for profile in profiled(hot, idle, dialect=Dialect.NEW):
        assert profile.evidence["energyBound"] == "unknown"
        assert UNKNOWN in profile.profile.reason
        assert "kepler override" not in profile.profile.reason
        assert profile.profile.confidence == 0.5


def test_counters_decide_where_energy_cannot():
    pod = a_pod(
        cpu_rate=1.9,
        kepler_package_rate=95,
        kepler_dram_rate=19,
        cycles=4e9,
        instructions=2e9,
        llc_misses=3e7,
    )

    status = status_of(pod, dialect=Dialect.NEW)

    assert status["cpu"]["bound"] == "memory"
    assert status["classificationReason"].endswith(
        "counter override: cpu-bound=memory (ipc 0.50<0.70, llc-mpki 15.0≥10.0)"
    )
    assert (status["evidence"]["ipc"], status["evidence"]["llcMpki"]) == (0.5, 15)
    assert status["confidence"] == 0.7


def test_pressure_is_averaged_over_the_pods():
    status = status_of(a_pod(cpu_rate=1, psi_io=0.5), a_pod("web-1", cpu_rate=1, psi_io=0.12))

    assert "psi override: cpu-bound=io (io-pressure 31%≥20%)" in status["classificationReason"]


@pytest.mark.parametrize(
    ("count", "last", "shared"),
    [(5, 0.2, {"n1"}), (4, 0.2, set()), (5, 0.2019, {"n1"}), (5, 0.2021, set())],
)
def test_an_exporter_is_caught_by_the_one_ratio_of_five_active_pods(count, last, shared):
    ratios = [0.2] * (count - 1) + [last]
    pods = [
        a_pod(f"p{place}", kepler_package_rate=10 + place, kepler_dram_rate=(10 + place) * ratio)
        for place, ratio in enumerate(ratios)
    ]
    away = a_pod("away", "n2", kepler_package_rate=10, kepler_dram_rate=9)
    resting = a_pod("resting", kepler_package_rate=0, kepler_dram_rate=0)

    assert nodes_of_one_ratio([*pods, away, resting]) == shared


def test_a_caught_exporter_says_nothing_in_the_old_dialect():
    pods = [
        a_pod(f"p{place}", owner="", cpu_rate=1.9, kepler_package_rate=95, kepler_dram_rate=19)
        for place in range(5)
    ]

    profiles = profiled(*pods, dialect=Dialect.OLD)

    assert {profile.evidence["energyBound"] for profile in profiles} == {"unknown"}
    assert all(UNKNOWN in profile.profile.reason for profile in profiles)


amounts = st.none() | st.floats(0, 1e18)
any_measures = st.builds(
    PodMeasures,
    **dict.fromkeys(
        (
            *("cpu_rate", "mem_working_set", "dcgm_gpu_util", "kepler_package_rate"),
            *("kepler_dram_rate", "kepler_gpu_rate", "cycles", "instructions", "llc_misses"),
            *("psi_io", "psi_memory"),
        ),
        amounts,
    ),
)


@given(st.lists(any_measures, min_size=1, max_size=7), st.sampled_from(Dialect))
def test_no_measures_crash(measures, dialect):
    pods = [evolve(a_pod(f"web-{place}"), measures=each) for place, each in enumerate(measures)]

    status = status_of(*pods, dialect=dialect)

    assert json.dumps(status, allow_nan=False)
    assert 0.3 <= status["confidence"] <= 0.7
    assert status["evidence"]["energyBound"] in ("compute", "memory", "none", "unknown")
    assert 0 <= status["cpu"]["avgUtilizationPct"] <= 100
