"""The scores of nodes, term by term, and which nodes take a pod."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_power.classifier.hints import Hints
from temper_plugin_power.operating.twin import Hardware, Twin
from temper_plugin_power.placing.demands import PodDemand, demand_of
from temper_plugin_power.placing.marginal import Coefficients, impact_of
from temper_plugin_power.placing.rejecting import rejection
from temper_plugin_power.placing.scoring import Score, performance_pressure, score
from temper_plugin_power.placing.subjects import Choices, NodeView, PodView
from temper_plugin_power.standing import Standing, standing_of
from tests.power.made import a_profile


def a_twin(node_class="performance", headroom=80, cpu_pct=100, gpu_pct=100):
    return Twin(node_class, headroom, 20, 10, cpu_pct, gpu_pct, 50, 1.1)


def a_node(*arguments, hardware=None, **options):
    return NodeView(a_twin(*arguments, **options), 0.0, hardware)


def a_pod(workload_class="standard", cpu=None, gpu=None, demand=None, evicted_from=None):
    standing = Standing(workload_class, "annotation", cpu, gpu)
    return PodView(standing, demand or PodDemand(1), evicted_from)


BASE = 0.4 * 80 + 0.3 * 80 + 0.3 * 90


def points(pod, node, pressure=0.0, choices=None):
    return score(pod, node, pressure, choices or Choices()).points


@pytest.mark.parametrize(
    ("pod", "node", "pressure", "expected"),
    [
        (a_pod("performance"), a_node("performance"), 50, BASE + 15),
        (a_pod("performance"), a_node("eco"), 50, BASE),
        (a_pod("standard"), a_node("eco"), 50, BASE + 10),
        (a_pod("standard"), a_node("performance"), 0, BASE),
        (a_pod("standard"), a_node("performance"), 50, BASE - 15),
        (a_pod("standard"), a_node("draining"), 50, BASE),
        (a_pod(evicted_from="eco"), a_node("eco"), 0, BASE + 10 - 25),
        (a_pod(evicted_from="performance"), a_node("eco"), 0, BASE + 10),
    ],
)
def test_the_classes_of_pod_and_node_add_and_subtract(pod, node, pressure, expected):
    assert points(pod, node, pressure) == int(expected)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (NodeView(), 50),
        (NodeView(a_twin(), None), 50),
        (NodeView(a_twin(), 300.1), 50),
        (NodeView(a_twin(), 300), int(BASE)),
    ],
)
def test_a_stale_twin_is_neutral(node, expected):
    assert points(a_pod(), node) == expected


def test_the_pressure_is_the_mean_over_fresh_performance_nodes():
    nodes = [a_node(headroom=80), a_node(headroom=40), a_node("eco", headroom=0)]
    stale = NodeView(a_twin(headroom=0), 999)

    assert performance_pressure([*nodes, stale, NodeView()]) == 40
    assert performance_pressure([stale]) == 0


@pytest.mark.parametrize(
    ("pct", "sensitivity", "penalty"),
    [
        (60, "high", 16),
        (60, "medium", 8),
        (60, "low", 3.2),
        (60, "none", 0),
        (60, None, 0),
        (100, "high", 0),
        (0, "high", 0),
        (-5, "high", 0),
        (150, "high", 0),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_a_cap_costs_points_by_the_sensitivity(device, pct, sensitivity, penalty):
    pod, node = a_pod(**{device: sensitivity}), a_node("eco", **{f"{device}_pct": pct})

    terms = score(pod, node, 0, Choices()).terms

    assert terms["sensitivity"] == pytest.approx(-penalty)


def test_a_node_that_has_no_gpu_costs_nothing_for_gpus():
    pod, node = a_pod(gpu="high"), a_node("eco", gpu_pct=60, hardware=Hardware())

    assert score(pod, node, 0, Choices()).terms["sensitivity"] == 0


def test_a_sensitive_pod_prefers_an_uncapped_node_and_a_medium_one_the_eco_node():
    eco, performance = a_node("eco", cpu_pct=60), a_node("performance")

    assert points(a_pod(cpu="high"), eco) < points(a_pod(cpu="high"), performance)
    assert points(a_pod(cpu="medium"), eco) > points(a_pod(cpu="medium"), performance)


@given(st.floats(1, 99), st.floats(0, 1))
def test_a_deeper_cap_never_scores_higher(pct, share):
    deep, shallow = (a_node("eco", cpu_pct=each) for each in (pct * share, pct))

    for sensitivity in ("high", "medium", "low", "none"):
        pod = a_pod(cpu=sensitivity)
        if deep.twin.cpu_pct > 0:
            assert points(pod, deep) <= points(pod, shallow)


SERVER = Hardware(sockets=2, cores=100, max_watts_per_socket=500)
GPU_SERVER = evolve(SERVER, has_gpu=True, gpus=4, max_watts_per_gpu=700)
GIB = 1 << 30


@pytest.mark.parametrize(
    ("demand", "workload_class", "hardware", "watts", "waste"),
    [
        (PodDemand(10), "standard", SERVER, 70, 0),
        (PodDemand(10, 10 * GIB), "standard", SERVER, 77, 0),
        (PodDemand(10, 99 * GIB), "standard", SERVER, 91, 0),
        (PodDemand(500), "standard", SERVER, 700, 0),
        (PodDemand(10), "standard", Hardware(cores=100), 24.5, 0),
        (PodDemand(10), "standard", Hardware(cores=20), 52.5, 0),
        (PodDemand(10), "standard", Hardware(), 105, 0),
        (PodDemand(10), "standard", GPU_SERVER, 70, 240),
        (PodDemand(10), "standard", evolve(GPU_SERVER, gpus=8), 70, 300),
        (PodDemand(10, gpus=2), "standard", GPU_SERVER, 70 + 2 * 700 * 0.65, 0),
        (PodDemand(10, gpus=2), "performance", GPU_SERVER, 70 + 2 * 700 * 0.85, 0),
        (PodDemand(10, gpus=2), "standard", SERVER, 70, 0),
        (
            PodDemand(10, 0, 1, "amd"),
            "standard",
            evolve(GPU_SERVER, max_watts_per_gpu=0),
            70 + 260,
            0,
        ),
        (
            PodDemand(10, 0, 1, "nvidia"),
            "standard",
            evolve(GPU_SERVER, max_watts_per_gpu=0),
            70 + 227.5,
            0,
        ),
    ],
)
def test_a_pod_adds_watts_and_lets_gpus_idle(demand, workload_class, hardware, watts, waste):
    impact = impact_of(demand, workload_class, hardware, Coefficients())

    assert impact.watts == pytest.approx(watts)
    assert impact.waste_watts == waste
    assert impact.cooling_delta == pytest.approx(min(100, watts / 50))
    assert impact.psu_delta == pytest.approx(watts / 500)


def test_each_part_of_the_marginal_penalty_is_bounded():
    huge = impact_of(PodDemand(100, gpus=99), "performance", GPU_SERVER, Coefficients())
    small = impact_of(PodDemand(10), "standard", SERVER, Coefficients())

    assert huge.penalty(None) == pytest.approx(20 + 20 + 15)
    assert small.penalty(None) == pytest.approx(3.5 + 1.4 * 0.6 + 0.14 * 0.4)
    assert small.penalty(2.0) == pytest.approx(7 + 1.4 * 0.6 + 0.14 * 0.4)
    assert small.penalty(0.5) == small.penalty(None)


@pytest.mark.parametrize(
    ("hardware", "gpus", "penalty"),
    [(GPU_SERVER, 0, 30), (GPU_SERVER, 1, 0), (SERVER, 0, 0), (None, 0, 0)],
)
def test_without_marginal_costs_idle_gpus_cost_a_constant(hardware, gpus, penalty):
    pod, node = a_pod(demand=PodDemand(1, gpus=gpus)), a_node(hardware=hardware)

    terms = score(pod, node, 0, Choices(is_marginal=False)).terms

    assert terms["marginal"] == -penalty


@pytest.mark.parametrize(
    ("points", "most", "scaled"), [(61, 100, 61), (61, 10, 6), (65, 10, 7), (4, 10, 0), (5, 10, 1)]
)
def test_the_scale_of_the_wire_rounds_away_from_zero(points, most, scaled):
    assert Score(points).on_scale(most) == scaled


@given(
    st.builds(
        a_pod,
        st.sampled_from(["performance", "standard"]),
        st.sampled_from(["high", "low", None]),
        st.sampled_from(["high", "low", None]),
        st.builds(PodDemand, st.floats(0, 1e6), st.floats(0, 1e15), st.integers(0, 99)),
        st.sampled_from([None, "eco", "performance"]),
    ),
    st.builds(
        a_node,
        st.sampled_from(["performance", "eco", "draining", "unknown"]),
        st.floats(0, 100),
        st.floats(-1, 200),
        hardware=st.sampled_from([None, SERVER, GPU_SERVER, Hardware()]),
    ),
    st.floats(0, 100),
)
def test_every_score_is_a_whole_number_from_0_to_100(pod, node, pressure):
    assert points(pod, node, pressure) in range(101)


ECO_REASON = "temper: performance pod rejected from eco/draining node (class from {})"
LABEL_REASON = (
    "temper: performance pod rejected from eco node (label fallback) (class from annotation)"
)


@pytest.mark.parametrize(
    ("pod", "node", "reason"),
    [
        (a_pod("performance"), a_node("eco"), ECO_REASON.format("annotation")),
        (a_pod("performance"), a_node("draining"), ECO_REASON.format("annotation")),
        (a_pod("performance"), a_node("performance"), None),
        (a_pod("performance"), a_node("unknown"), None),
        (a_pod("performance"), NodeView(), None),
        (a_pod("performance"), NodeView(a_twin("eco"), 9999), ECO_REASON.format("annotation")),
        (a_pod("performance"), NodeView(label_profile="eco"), LABEL_REASON),
        (a_pod("performance"), NodeView(a_twin(), 0, label_profile="eco"), None),
        (a_pod("performance"), NodeView(a_twin(), 9999, label_profile="eco"), LABEL_REASON),
        (a_pod("performance"), NodeView(a_twin("unknown"), 0, label_profile="eco"), LABEL_REASON),
        (a_pod("standard"), a_node("eco"), None),
        (a_pod("standard"), NodeView(label_profile="eco"), None),
        (a_pod(evicted_from="eco"), a_node("eco"), ECO_REASON.format("eviction")),
        (a_pod(evicted_from="performance"), a_node("eco"), None),
        (evolve(a_pod("performance"), is_exempt=True), a_node("eco"), None),
        (evolve(a_pod(evicted_from="eco"), is_exempt=True), a_node("draining"), None),
    ],
)
def test_only_performance_pods_are_kept_off_eco_and_draining_nodes(pod, node, reason):
    assert rejection(pod, node) == reason


@pytest.mark.parametrize(
    ("hints", "profile", "standing"),
    [
        (Hints(), None, Standing("standard", "default")),
        (
            Hints(workload_class="standard"),
            a_profile("performance", confidence=0.1),
            Standing("standard", "annotation"),
        ),
        (
            Hints(),
            a_profile("performance"),
            Standing("performance", "profile", "medium", "none"),
        ),
        (
            Hints(cpu_sensitivity="low"),
            a_profile(cpu_sensitivity="high", gpu_sensitivity="high"),
            Standing("standard", "profile", "low", "high"),
        ),
        (
            Hints(),
            a_profile(cpu_sensitivity="high", confidence=0.3),
            Standing("standard", "profile"),
        ),
        (
            Hints(),
            a_profile(cpu_sensitivity="high", confidence=0.3, hints=("cpu.capSensitivity",)),
            Standing("standard", "profile", "high"),
        ),
        (
            Hints(),
            a_profile(cpu_sensitivity="high", confidence=0.3, hints=None),
            Standing("standard", "profile", "high", "none"),
        ),
    ],
)
def test_a_pods_own_annotations_come_before_the_profile_of_its_workload(hints, profile, standing):
    assert standing_of(hints, profile) == standing


def a_container(requests=None, limits=None):
    return {"resources": {"requests": requests or {}, "limits": limits or {}}}


@pytest.mark.parametrize(
    ("spec", "demand"),
    [
        ({}, PodDemand(0.25)),
        (
            {"containers": [a_container({"cpu": "500m", "memory": "1Gi"})] * 2},
            PodDemand(1, 2 * GIB),
        ),
        ({"containers": [a_container(limits={"cpu": 2})]}, PodDemand(2)),
        ({"containers": [a_container({"cpu": "1"}, {"cpu": "4"})]}, PodDemand(1)),
        (
            {"containers": [a_container(limits={"nvidia.com/gpu": "2"})]},
            PodDemand(0.25, 0, 2, "nvidia"),
        ),
        (
            {
                "containers": [
                    a_container({"nvidia.com/mig-1g.10gb": 3}, {"nvidia.com/mig-1g.10gb": 3})
                ]
            },
            PodDemand(0.25, 0, 3, "nvidia"),
        ),
        (
            {
                "containers": [a_container({"cpu": 1})],
                "initContainers": [a_container({"cpu": 9, "amd.com/gpu": 1})],
            },
            PodDemand(1, 0, 1, "amd"),
        ),
        ({"containers": [a_container({"cpu": "lots"}), 3, {"resources": 3}]}, PodDemand(0.25)),
        ({"containers": 3}, PodDemand(0.25)),
    ],
)
def test_the_demand_of_a_pod_is_what_its_containers_request(spec, demand):
    assert demand_of(spec, "standard") == demand


def test_a_performance_pod_that_names_no_cpu_counts_half_a_core():
    assert demand_of({}, "performance") == PodDemand(0.5)
