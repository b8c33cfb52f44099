"""Places found in a cgroup hierarchy, real or written down."""

from temper_core.node.cgroups import CgroupTree
from temper_core.records.steering import Scope, ScopeKind, SteeredPlace, SteeringRule
from temper_core.steering.scopes import place_cgroups
from tests.core.steering.user_space.plans import at, named, rule, steered

POD = SteeredPlace(Scope(ScopeKind.POD, "podabc.slice"), (SteeringRule("high"),), "shop/web")


def inodes(*paths):
    return {path: number for number, path in enumerate(("", *paths), 1)}


def test_every_directory_has_a_place_and_entries_are_where_one_begins():
    known = inodes("k", "k/burstable-podabc.slice", "k/burstable-podabc.slice/c1", "other")

    placed = place_cgroups(steered(POD), known)

    assert placed.entries == {3: POD}
    assert [placed.places[n] for n in range(1, 6)] == [None, None, POD, POD, None]
    assert placed.paths[4] == "k/burstable-podabc.slice/c1"
    assert placed.missing == ()


def test_an_inner_place_begins_within_an_outer_one():
    outer, inner = at("a", rule("normal")), at("a/b", rule("high"))

    placed = place_cgroups(steered(outer, inner), inodes("a", "a/b", "a/b/c", "a/d"))

    assert placed.entries == {2: outer, 3: inner}
    assert placed.places[4] is inner
    assert placed.places[5] is outer


def test_no_entry_begins_in_a_pod_where_a_directory_is_named_like_another_pod():
    mine = at("a", rule("background"), pod="shop/mine")
    container = SteeredPlace(Scope(ScopeKind.CONTAINER, "4f4f"), (rule("critical"),), "shop/web")

    placed = place_cgroups(
        steered(POD, container, mine),
        inodes("a", "a/x-podabc.slice", "a/x-podabc.slice/cri-4f4f.scope", "b-podabc.slice"),
    )

    assert placed.entries == {2: mine, 5: POD}
    assert placed.places[4] is mine
    assert placed.missing == (container.scope,)


def test_an_exact_place_is_not_passed_down():
    root, below = at("", rule("system"), exact=True), at("a", rule("high"))

    placed = place_cgroups(steered(root, below), inodes("a", "a/b", "c"))

    assert placed.entries == {1: root, 2: below}
    assert placed.places[4] is None


def test_beneath_an_exact_place_the_outer_one_goes_on():
    outer, exact = at("a", rule("normal")), at("a/b", rule("system"), exact=True)

    placed = place_cgroups(steered(outer, exact), inodes("a", "a/b", "a/b/c"))

    assert placed.entries == {2: outer, 3: exact}
    assert placed.places[4] is outer


def test_pods_without_a_cgroup_are_missing_and_the_nodes_own_places_are_not():
    places = (POD, at("system.slice/crio.service", rule("system")), named("mysqld", pod="db"))

    placed = place_cgroups(steered(*places), inodes("k"))

    assert placed.missing == (POD.scope,)


def test_ids_are_those_of_the_real_directories(cgroups, tree):
    pod = cgroups.make("kubepods/podabc.slice")
    inside = cgroups.make("kubepods/podabc.slice/c1")
    tree.refresh()

    placed = place_cgroups(steered(POD), tree.inodes)

    assert placed.entries == {pod.stat().st_ino: POD}
    assert placed.places[inside.stat().st_ino] is POD


def test_a_cgroup_made_anew_has_another_id(cgroups):
    tree = CgroupTree(cgroups.root)
    pod = cgroups.make("podabc.slice")
    tree.refresh()
    before = place_cgroups(steered(POD), tree.inodes).entries
    pod.rmdir()
    cgroups.make("podabc.slice")

    tree.refresh()

    assert place_cgroups(steered(POD), tree.inodes).entries.keys() != before.keys()
