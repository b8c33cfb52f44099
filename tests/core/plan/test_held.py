"""Shares held to the layers in force."""

import attrs
import pytest

from temper_core.plan.addresses import locate
from temper_core.plan.assign import assign
from temper_core.plan.capacity import Capacity
from temper_core.plan.groups import tier_pods_of
from temper_core.plan.held import held_shares
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.profiles.conditions import GroupTarget
from temper_core.records.thread_groups import Treatment
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings import Settings
from temper_core.testing import make_machine

CRITICAL, HIGH, NORMAL = 1_000_000, 100_000, 1
GROUP = "mysql.connections.critical"
REST = "mysql.rest.critical"


@pytest.fixture
def held(mysql):
    """Share out for some pods what the layers in force have."""

    def share(in_force, *pods, cores=8, profiles=None):
        machine, settings = make_machine(cores, 2), Settings()
        catalogue = ProfileCatalogue(tuple([mysql] if profiles is None else profiles))
        located = [locate(each, "auto") for each in assign(pods, catalogue, machine, settings)]
        all_tier_pods, _ = tier_pods_of(located, is_steered=True)
        return held_shares(in_force, all_tier_pods, Capacity.of(machine, 1), settings.tiers)

    return share


@pytest.fixture
def database(pod, with_image):
    return with_image(pod("db", CRITICAL, 1500), "mysql:8")


def notes_of(shares):
    return {note.subject: note.message for note in shares.notes if note.code == "waiting"}


def sizes_of(shares):
    return {
        name: (grant.kind, grant.least, grant.most, grant.exclusive, grant.demoted)
        for name, grant in shares.grants.items()
    }


def test_the_grants_are_those_in_force_whatever_the_pods_ask_for(
    held, steered, pod, mysql, database
):
    in_force = steered(database, pod("a", HIGH, 500), profiles=[mysql]).layers

    shares = held(in_force, pod("b", CRITICAL, 60_000))

    owning = [layer for layer in in_force if layer.kind is not LayerKind.OPEN]
    assert sizes_of(shares) == {
        layer.name: (
            layer.kind,
            layer.cpus_min // 2,
            layer.cpus_max // 2,
            layer.exclusive,
            layer.demoted,
        )
        for layer in owning
    }
    assert (
        shares.grants[GROUP].reason
        == "cpu_fraction 0.85 of the requests: 2 cores with idle siblings"
    )
    assert "core" in shares.grants["system"].reason


def test_a_demoted_layer_stays_demoted(held, steered, pod):
    in_force = steered(pod("a", CRITICAL, 8000), cores=4).layers

    shares = held(in_force, pod("a", CRITICAL, 100), cores=4)

    assert shares.grants["critical"].demoted
    assert shares.grants["critical"].kind is LayerKind.GROUPED


def test_a_group_goes_into_its_layer_where_that_is_in_force(held, steered, mysql, database):
    with_group = steered(database, profiles=[mysql]).layers

    assert held(with_group, database).goals[GROUP] is GroupTarget.OWN
    assert held(with_group[1:], database).goals[GROUP] is GroupTarget.TIER
    assert held(with_group, database).goals[REST] is GroupTarget.OPEN


def test_a_group_that_is_to_stay_in_its_tier_leaves_a_layer_in_force_at_once(
    held, steered, mysql, database
):
    groups = mysql.profile.thread_groups
    calmed = attrs.evolve(groups[0], treatment=Treatment.NORMAL, cpu_fraction=None)
    edited = attrs.evolve(
        mysql, profile=attrs.evolve(mysql.profile, thread_groups=(calmed, *groups[1:]))
    )

    shares = held(steered(database, profiles=[mysql]).layers, database, profiles=[edited])

    assert shares.goals[GROUP] is GroupTarget.TIER
    assert GROUP in shares.grants


def test_what_stays_in_a_tier_is_its_demand(held, steered, pod, mysql, database):
    in_force = steered(database, profiles=[mysql]).layers

    shares = held(in_force, database, pod("a", HIGH, 700), pod("b", -1000, 800))

    assert set(shares.demands) == {Tier.CRITICAL, Tier.HIGH}
    assert shares.demands[Tier.HIGH].requests == 700
    assert shares.demands[Tier.CRITICAL].requests == pytest.approx(225)


def test_a_group_without_its_layer_waits_with_the_numbers(held, steered, pod, database):
    in_force = steered(pod("a", CRITICAL, 1500)).layers

    shares = held(in_force, database)

    assert notes_of(shares) == {
        GROUP: "waits for the next engine: up to 2 cores of 2 CPUs, cpu_fraction 0.85 of the "
        "requests: 2 cores with idle siblings; until then the threads stay in the layer of their "
        "tier"
    }


def test_pods_of_a_tier_without_a_layer_wait_in_open(held, steered, pod):
    in_force = [layer for layer in steered(cores=2).layers if layer.tier is None]

    shares = held(in_force, pod("a", HIGH, 700))

    assert "1 pod requests 700m" in notes_of(shares)["high"]
    assert notes_of(shares)["high"].endswith("until then the threads share the Open layer")


def test_a_layer_that_its_pods_outgrew_waits_with_the_numbers(held, steered, pod):
    in_force = steered(pod("a", CRITICAL, 1500)).layers

    shares = held(in_force, pod("a", CRITICAL, 9000))

    assert notes_of(shares)["critical"].startswith(
        "waits for the next engine: 5 cores needed, 2 in force, 1 pod requests 9000m"
    )


def test_a_layer_with_room_waits_for_nothing(held, steered, pod):
    in_force = steered(pod("a", CRITICAL, 1500), pod("b", NORMAL, 100)).layers

    shares = held(in_force, pod("a", CRITICAL, 3500), pod("c", HIGH, 10))

    assert notes_of(shares) == {}


def test_what_no_engine_could_give_is_not_waited_for(held, steered, pod):
    in_force = steered(cores=1).layers

    shares = held(in_force, pod("a", HIGH, 700), cores=1)

    assert notes_of(shares) == {}
    assert ("no_own_core", "high") in {(note.code, note.subject) for note in shares.notes}


def test_pods_that_outgrew_a_fence_wait_for_a_layer_without_one(held, steered, pod):
    in_force = steered(pod("a", CRITICAL, 4000), cores=4).layers

    shares = held(in_force, pod("a", CRITICAL, 8000), cores=4)

    assert not shares.grants["critical"].demoted
    assert "2 cores needed, 2 in force, 1 pod requests 8000m" in notes_of(shares)["critical"]
    assert {note.code for note in shares.notes} == {"waiting"}
