"""The scores of many nodes at once are those of each node alone."""

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.places import MOST_KINDS, NodeKinds, TwinReport
from temper_plugin_power.extender.rating import Moment, points_of, terms_of, written_scores
from temper_plugin_power.operating.twin import Hardware, Twin
from temper_plugin_power.placing.demands import PodDemand
from temper_plugin_power.placing.scoring import performance_pressure, score
from temper_plugin_power.placing.subjects import Choices, NodeView, PodView
from temper_plugin_power.standing import Standing

NOW = 1_790_000_000.0
PERCENT = st.floats(0, 100)
CLASSES = st.sampled_from(["performance", "eco", "draining", "unknown"])
SENSITIVITY = st.sampled_from(["high", "medium", "low", None])
TWINS = st.builds(
    Twin, CLASSES, PERCENT, PERCENT, PERCENT, PERCENT, PERCENT, PERCENT, st.floats(1, 2)
)
HARDWARE = st.none() | st.builds(
    Hardware,
    st.integers(0, 4),
    st.integers(0, 256),
    st.floats(0, 500),
    st.booleans(),
    st.integers(0, 8),
    st.floats(0, 900),
)
NODES = st.lists(st.tuples(st.none() | TWINS, st.floats(-120, 400), HARDWARE), max_size=6)
PODS = st.builds(
    PodView,
    st.builds(
        Standing,
        st.sampled_from(["performance", "standard"]),
        st.just("annotation"),
        SENSITIVITY,
        SENSITIVITY,
    ),
    st.builds(PodDemand, st.floats(0, 64), st.floats(0, 1e12), st.integers(0, 8)),
    st.sampled_from([None, "eco", "performance"]),
)
CHOICES = st.builds(Choices, st.booleans(), cap_penalty_cpu=PERCENT, cap_penalty_gpu=PERCENT)


def known(nodes):
    cluster = Cluster()
    for number, (twin, age_s, hardware) in enumerate(nodes):
        if twin is not None:
            cluster.put_twin(f"n{number}", TwinReport(twin, NOW - age_s))
        if hardware is not None:
            cluster.put_hardware(f"n{number}", hardware)
    return cluster


@given(NODES, PODS, CHOICES)
def test_many_nodes_have_the_scores_of_each_alone(nodes, pod, choices):
    views = [NodeView(twin, NOW - (NOW - age_s), hardware) for twin, age_s, hardware in nodes]
    pressure = performance_pressure(views)
    cluster, moment = known(nodes), Moment.of(NOW, choices)
    names = [f"n{number}" for number in range(len(nodes))]

    points = points_of(names, cluster, terms_of(pod, cluster, choices, moment), moment)

    assert points == [score(pod, view, pressure, choices).points for view in views]


def test_a_score_is_written_for_any_name():
    written = written_scores(['a"b', "\ud800"], [49, 45], Cluster(), 10)

    assert written == '[{"host": "a\\"b", "score": 5}, {"host": "\\ud800", "score": 5}]'


def test_nodes_alike_share_a_kind_and_their_number_is_bounded():
    kinds = NodeKinds()
    first = kinds.of("eco", Hardware(cores=8))

    assert kinds.of("eco", Hardware(cores=8)) is first
    for cores in range(MOST_KINDS):
        kinds.of("eco", Hardware(cores=cores))
    assert kinds.of("eco", Hardware(cores=8)) == kinds.of("eco", Hardware(cores=8))


def test_the_staleness_of_twins_is_a_setting():
    twin = Twin("eco", 0, 0, 0, 100, 100, 0, 1)
    view, pod = NodeView(twin, 90.0), PodView(Standing("standard", "default"), PodDemand(1))
    strict = evolve(Choices(), twin_staleness_s=60.0)

    assert score(pod, view, 0, Choices()).points == 70
    assert score(pod, view, 0, strict).points == 50
