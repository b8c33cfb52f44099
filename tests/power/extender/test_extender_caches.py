"""What the extender keeps of the objects that are watched."""

import math
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from temper_core import MachineError
from temper_plugin_power.extender import following
from temper_plugin_power.extender.cluster import Cluster, Eviction, Owner
from temper_plugin_power.extender.following import Follower, Records
from temper_plugin_power.extender.reading import (
    eviction_of_object,
    hardware_of_object,
    label_of_object,
    profile_of_object,
    twin_of_object,
)
from temper_plugin_power.extender.watching import watched_by
from temper_plugin_power.operating.twin import Hardware
from temper_plugin_power.workloads.owners import Workload
from tests.power.extender.serving import NODE_LABEL, a_profile, a_twin


def at_once(function, *arguments):
    function(*arguments)


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def twins(cluster):
    """Return a follower of the twins of the cluster."""
    return Follower(Records("nodetwins", cluster.put_twin), twin_of_object, at_once)


def classes(cluster):
    return {name: place.node_class for name, place in cluster.places.items()}


def test_a_list_replaces_all_and_events_change_one(cluster, twins):
    twins.replaced([a_twin("a", "eco"), a_twin("b", "draining")])
    twins.changed("MODIFIED", a_twin("a", "performance"))
    twins.changed("ADDED", a_twin("c", "eco"))
    twins.changed("DELETED", a_twin("b", "draining"))

    assert classes(cluster) == {"a": "performance", "c": "eco"}
    assert cluster.rejecting == {"c": "eco"}

    twins.replaced([a_twin("d")])

    assert classes(cluster) == {"d": "performance"}
    assert cluster.rejecting == {}


def test_a_list_that_breaks_off_changes_nothing(cluster, twins):
    twins.replaced([a_twin("a", "eco")])

    def broken():
        yield a_twin("b")
        raise MachineError("the connection was lost")

    with pytest.raises(MachineError):
        twins.replaced(broken())

    assert classes(cluster) == {"a": "eco"}


def test_a_twin_that_names_another_node_leaves_the_first(cluster, twins):
    twins.replaced([a_twin("a", "eco")])
    moved = a_twin("a", "eco")
    moved["spec"]["nodeName"] = "b"

    twins.changed("MODIFIED", moved)

    assert classes(cluster) == {"b": "eco"}


def test_more_objects_than_the_bound_are_left_out_with_a_line(cluster, twins, monkeypatch):
    monkeypatch.setattr(following, "MOST_OBJECTS", 2)

    with capture_logs() as logs:
        twins.replaced([a_twin(name) for name in "abcd"])
        twins.changed("MODIFIED", a_twin("a", "eco"))

    assert classes(cluster) == {"a": "eco", "b": "performance"}
    assert [entry["event"] for entry in logs] == ["objects_left_out"]


def test_a_node_is_forgotten_with_the_last_that_is_known_of_it(cluster):
    cluster.put_label("a", "")
    cluster.put_hardware("a", Hardware(cores=8))
    cluster.put_label("a", None)
    assert list(cluster.places) == ["a"]

    cluster.put_hardware("a", None)

    assert cluster.places == {}


@pytest.mark.parametrize(
    ("node_class", "label", "cause"),
    [
        ("eco", "", "eco"),
        ("draining", "performance", "draining"),
        ("performance", "eco", None),
        ("unknown", "eco", "label"),
        ("performance", "performance", None),
        ("unknown", "", None),
    ],
)
def test_a_node_rejects_by_its_twin_or_its_label(cluster, node_class, label, cause):
    cluster.put_twin(*twin_of_object(a_twin("n", node_class)))
    cluster.put_label("n", label)

    assert cluster.rejecting_between(0, math.inf).get("n") == cause


@pytest.mark.parametrize(
    ("node_class", "label", "cause"),
    [("performance", "eco", "label"), ("performance", "", None), ("eco", "performance", "eco")],
)
def test_a_node_with_a_stale_twin_rejects_by_its_label_too(cluster, node_class, label, cause):
    cluster.put_twin(*twin_of_object(a_twin("n", node_class)))
    cluster.put_label("n", label)

    assert cluster.rejecting_between(math.inf, math.inf).get("n") == cause


def test_a_node_that_leaves_rejects_nothing(cluster):
    cluster.put_twin(*twin_of_object(a_twin("n")))
    cluster.put_label("n", "eco")
    cluster.put_twin("n", None)
    assert cluster.rejecting_between(0, math.inf) == {"n": "label"}

    cluster.put_label("n", None)

    assert cluster.rejecting_between(math.inf, math.inf) == {}


def test_the_pressure_is_of_fresh_performance_nodes(cluster):
    for name, node_class, headroom, told_at in (
        ("a", "performance", 80, 100),
        ("b", "performance", 40, 200),
        ("c", "eco", 0, 150),
        ("d", "performance", 0, 99),
        ("e", "performance", 0, 201),
    ):
        node, report = twin_of_object(a_twin(name, node_class, headroom))
        cluster.put_twin(node, type(report)(report.twin, told_at))

    assert cluster.pressure(100, 200) == 40
    assert cluster.pressure(300, 400) == 0
    assert sorted(cluster.stale(100, 200)) == ["d", "e"]


@pytest.mark.parametrize(
    ("age_s", "found"), [(0, "eco"), (1800, "eco"), (1801, None), (-60, "eco"), (-61, None)]
)
def test_an_eviction_is_remembered_for_a_while(cluster, age_s, found):
    owner = Owner("shop", "Job", "a")
    cluster.put_eviction(owner, Eviction("eco", 10_000 - age_s))

    assert cluster.evicted_from(owner, 10_000, 1800) == found
    assert cluster.evicted_from(Owner("other", "Job", "a"), 10_000, 1800) is None


FROM, TIME = "joulie.io/last-eviction-from-class", "joulie.io/last-eviction-time"
EVICTED = {FROM: "eco", TIME: "2026-11-27T04:00:00Z"}
AT = datetime(2026, 11, 27, 4, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("annotations", "eviction"),
    [
        (EVICTED, Eviction("eco", AT)),
        (
            {**EVICTED, FROM: "performance"},
            Eviction("performance", AT),
        ),
        ({**EVICTED, TIME: "soon"}, Eviction("eco", -math.inf)),
        ({**EVICTED, FROM: "gold"}, None),
        ({}, None),
        ("none", None),
    ],
)
def test_an_owner_remembers_an_eviction(annotations, eviction):
    item = {"metadata": {"name": "web-77f", "namespace": "shop", "annotations": annotations}}

    read = eviction_of_object("ReplicaSet")(item)

    assert read == (eviction and (Owner("shop", "ReplicaSet", "web-77f"), eviction))


def test_the_label_of_a_node_is_a_text_or_empty():
    labels = [{NODE_LABEL: "eco"}, {NODE_LABEL: 3}, {}, None, "eco"]

    found = [label_of_object({"metadata": {"name": "n", "labels": each}}) for each in labels]

    assert found == [("n", "eco"), *[("n", "")] * 4]


def test_a_profile_is_kept_without_the_text_of_its_reason():
    workload, profile = profile_of_object(a_profile(classificationReason="x" * 1000))

    assert workload == Workload("shop", "Deployment", "web")
    assert (profile.workload_class, profile.reason) == ("performance", "")


def test_objects_without_any_field_are_read(cluster):
    for each in watched_by(cluster):
        for item in ({}, {"metadata": None, "spec": [], "status": 3}):
            record = each.read(item)
            if record is not None:
                each.put(*record)

    assert list(cluster.places) == [""]
    assert hardware_of_object({}) == ("", Hardware())


def test_of_a_large_profile_little_is_kept():
    """Hints of a megabyte take 14 in memory, and anybody may write profiles of a namespace."""
    large = a_profile(name="x" * 1_000_000, hints=["h" * 1000] * 1000)
    large["spec"]["workloadRef"]["kind"] = "y" * 1_000_000

    workload, profile = profile_of_object(large)

    assert len(workload.kind + workload.name) <= 2 * 254
    assert sum(map(len, profile.hints)) <= 4096
