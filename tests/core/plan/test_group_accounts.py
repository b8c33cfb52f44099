"""What each group of a pod's profile becomes, as explain tells it."""

import attrs
import pytest

from temper_core.plan import explain
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch, Treatment
from temper_core.settings import Settings

HIGH = 100_000


def accounts(plan, name="default/a"):
    return {each.name: each for each in explain(plan, Settings(), name).groups}


@pytest.fixture
def on(pod, with_image):
    """Make a pod of that request whose image is mysql."""
    return lambda name, request: with_image(pod(name, HIGH, request), "mysql:8")


@pytest.fixture
def hot(profile, group):
    """Make a profile with an exclusive group of that fraction."""

    def make(fraction):
        return profile("mysql", group("hot", "q", treatment="exclusive", cpu_fraction=fraction))

    return make


@pytest.mark.parametrize(
    ("request_m", "fraction", "told"),
    [
        (2250, 0.85, "2250m x 0.85 = 1.9125, so 2 whole cores"),
        (2250, 0.9, "2250m x 0.9 = 2.025, so 3 whole cores"),
        (3000, 1.0, "3000m x 1.0 = 3, so 3 whole cores"),
        (1000, None, "1000m x 1 = 1, so 1 whole core"),
        (0, 0.85, "0m x 0.85 = 0, so 0 whole cores"),
    ],
)
def test_the_cores_of_an_exclusive_group_are_told_with_their_arithmetic(
    plan, on, hot, request_m, fraction, told
):
    made = plan(on("a", request_m), profiles=[hot(fraction)])

    assert accounts(made)["hot"].cores == told


def test_the_requests_of_all_pods_of_the_profile_are_added_up(plan, on, mysql):
    made = plan(on("a", 2250), on("b", 750), profiles=[mysql])

    assert accounts(made)["connections"].cores == (
        "3000m of 2 pods x 0.85 = 2.55, so 3 whole cores"
    )


def test_each_group_is_told_with_its_layer_and_what_that_makes_of_it(plan, on, mysql):
    found = accounts(plan(on("a", 2250), profiles=[mysql]))

    assert (found["connections"].layer, found["connections"].becomes) == (
        "mysql.connections.high",
        "a layer of its own: exclusive, idle siblings, 4-4 CPUs",
    )
    assert found["connections"].threads == "threads whose name begins with 'connection'"
    assert (found["rest"].layer, found["rest"].threads) == ("open", "all others")
    assert found["innodb"].layer == "high"
    assert "group_needs_steering: boost" in found["innodb"].notes[0]


def test_what_needs_steering_says_what_static_mode_makes_of_it(plan, steered, on, profile):
    by_title = ThreadGroup(
        "hot", (ThreadMatch(title_pattern="x"), ThreadMatch(comm_prefix="y")), Treatment.LATENCY
    )
    mine = profile("mysql", by_title)

    with_hints = accounts(steered(on("a", 1000), profiles=[mine]))["hot"]
    without = accounts(plan(on("a", 1000), profiles=[mine]))["hot"]

    loss = "1 of 2 matches: without hints these threads stay in the layer of their tier"
    assert (with_hints.static, without.static) == (loss, loss)
    assert with_hints.notes == ()
    assert "group_needs_steering" in without.notes[0]


def test_a_group_for_which_no_core_is_left_says_where_it_went(plan, on, mysql):
    found = accounts(plan(on("a", 4000), profiles=[mysql], cores=2))

    assert found["connections"].notes[0].startswith(("demoted: ", "folded: "))
    assert found["connections"].layer in {"mysql.connections.high", "high", "open"}


def test_the_parents_of_a_profile_are_told(plan, on, mysql):
    heir = attrs.evolve(mysql, lineage=("db (acme)",))

    found = explain(plan(on("a", 1000), profiles=[heir]), Settings(), "default/a")

    assert found.profile_extends == ("db (acme)",)


def test_a_pod_without_a_profile_has_no_accounts(plan, pod):
    assert accounts(plan(pod("a", HIGH))) == {}
