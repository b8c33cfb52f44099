"""What is written down of nodes and pods, and that every score is as new as that."""

import gc
import random
import tracemalloc

import pytest

from temper_core import Tier
from temper_plugin_density.placement.asking import BoundPod
from temper_plugin_density.placement.explaining import Decisions, ScoreRecord, explain
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.scoring import OLD_AFTER_S, Score, score
from tests.density.placement.made import NOW, bound, demand, facts

NEW = demand(Tier.CRITICAL, 1000)


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger(clock):
    ledger = Ledger(clock)
    ledger.replace_nodes([facts("a"), facts("b")])
    return ledger


def on(node, uid, tier=Tier.CRITICAL, millis=2000):
    return BoundPod(uid, node, demand(tier, millis, f"shop/{uid}"))


def score_of(ledger, pod, node):
    (found,) = ledger.scores(pod, [node])
    return found


def fenced(ledger, node):
    return score_of(ledger, NEW, node).inputs["fenced_after"]


def test_a_node_that_nobody_told_of_is_neutral(ledger):
    found = score_of(ledger, NEW, "nowhere")

    assert (found.rule, found.points) == ("unknown_node", 50)


def test_a_bound_pod_counts_at_once_and_its_successor_finds_its_cores(ledger):
    before = fenced(ledger, "a")

    ledger.put_pod(on("a", "1"))
    with_it = fenced(ledger, "a")
    ledger.drop_pod("1")

    assert (before, with_it, fenced(ledger, "a"), fenced(ledger, "b")) == (1, 2, 1, 1)


def test_a_pod_that_changes_is_counted_once(ledger):
    ledger.put_pod(on("a", "1", millis=2000))
    score_of(ledger, NEW, "a")

    ledger.put_pod(on("a", "1", millis=6000))

    assert fenced(ledger, "a") == 4
    assert ledger.pods == 1


def test_a_uid_on_another_node_has_left_the_first(ledger):
    ledger.put_pod(on("a", "1"))

    ledger.put_pod(on("b", "1"))

    assert (fenced(ledger, "a"), fenced(ledger, "b")) == (1, 2)


def test_pods_may_be_heard_of_before_their_node(ledger):
    ledger.put_pod(on("late", "1"))
    unknown = score_of(ledger, NEW, "late")

    ledger.put_node(facts("late"))

    assert unknown.rule == "unknown_node"
    assert fenced(ledger, "late") == 2
    assert ledger.nodes == ("a", "b", "late")


def test_a_node_that_is_gone_is_unknown_and_one_that_comes_back_has_its_pods(ledger):
    ledger.put_pod(on("a", "1"))

    ledger.drop_node("a")
    gone = score_of(ledger, NEW, "a")
    ledger.put_node(facts("a"))

    assert gone.rule == "unknown_node"
    assert fenced(ledger, "a") == 2


def test_a_list_says_what_there_is(ledger):
    ledger.put_pod(on("a", "1"))
    ledger.put_pod(on("b", "2"))

    ledger.replace_nodes([facts("b"), facts("c")])
    ledger.replace_pods([on("c", "3"), on("b", "2", millis=4000)])

    assert ledger.nodes == ("b", "c")
    assert (fenced(ledger, "b"), fenced(ledger, "c"), ledger.pods) == (3, 2, 2)


def test_a_node_that_changes_is_scored_anew(ledger):
    score_of(ledger, NEW, "a")

    ledger.put_node(facts("a", mode="safe_mode"))

    assert score_of(ledger, NEW, "a").rule == "not_enforcing"


def test_scores_grow_old_although_nothing_is_heard(ledger, clock):
    fresh = score_of(ledger, NEW, "a")

    clock.now += OLD_AFTER_S + 1
    old = score_of(ledger, NEW, "a")
    clock.now += 3600
    after_an_hour = score_of(ledger, NEW, "a")

    assert (fresh.rule, old.rule, after_an_hour.rule) == ("contention", "old", "old")
    assert after_an_hour.points == 50


def test_numbers_from_a_clock_that_is_ahead_count_once_it_is_time(ledger, clock):
    ledger.put_node(facts("a", told_at=NOW + 700))
    early = score_of(ledger, NEW, "a")

    clock.now += 200

    assert (early.rule, score_of(ledger, NEW, "a").rule) == ("old", "contention")


def test_scores_are_remembered_by_size_tier_and_kind(ledger):
    demands = [demand(Tier.CRITICAL, millis) for millis in range(0, 200_000, 1000)]
    demands += [demand(Tier.LOW, 1000), demand(Tier.CRITICAL, 1000, is_system=True)]

    for each in demands + demands:
        assert score_of(ledger, each, "a") == score(each, facts("a"), bound(), NOW)


@pytest.mark.parametrize("seed", range(5))
def test_after_any_number_of_changes_the_sums_are_those_of_what_is_there(ledger, seed):
    chance, there = random.Random(seed), {}

    for _ in range(200):
        uid, node = str(chance.randrange(12)), chance.choice("ab")
        if chance.random() < 0.4:
            there.pop(uid, None)
            ledger.drop_pod(uid)
        else:
            there[uid] = on(node, uid, chance.choice(list(Tier)), chance.randrange(3000))
            ledger.put_pod(there[uid])
        score_of(ledger, NEW, node)

    for node in "ab":
        expected = bound(
            *((p.demand.tier, p.demand.millis) for p in there.values() if p.node == node)
        )
        assert score_of(ledger, NEW, node) == score(NEW, facts(node), expected, NOW)


def test_a_pod_is_found_by_its_name(ledger):
    ledger.put_pod(on("b", "1"))

    assert ledger.find_pod("shop/1") == ("b", demand(Tier.CRITICAL, 2000, "shop/1"))
    assert ledger.find_pod("shop/2") is None


def decision(pod, nodes, at=NOW, asker=""):
    scores = tuple(Score(f"n{number}", 50.0, "normal_pod") for number in range(nodes))
    return ScoreRecord(demand(Tier.NORMAL, pod=pod), scores, at, asker)


def test_the_oldest_answers_are_dropped_above_the_bound_of_bytes():
    decisions = Decisions(most_bytes=2 * decision("shop/0", 40).size_bytes)

    for number in range(5):
        decisions.keep(decision(f"shop/{number}", 40))

    assert [number for number in range(5) if decisions.of(f"shop/{number}")] == [3, 4]


def test_answers_without_a_score_are_bounded_too():
    decisions = Decisions(most_bytes=100_000)

    for number in range(500):
        decisions.keep(decision(f"shop/{number}", 0))

    assert decisions.of("shop/0") == ()
    assert decisions.of("shop/499")
    assert decisions.size_bytes <= 100_000


def test_long_names_count_by_their_length():
    decisions = Decisions(most_bytes=1_000_000)

    for number in range(50):
        decisions.keep(decision(f"shop/{number}{'x' * 100_000}", 0))

    assert decisions.size_bytes <= 1_000_000


def test_the_bound_holds_for_the_memory_that_answers_take():
    decisions, ledger = Decisions(most_bytes=2_000_000), Ledger(lambda: NOW)
    for number in range(100):
        ledger.put_node(facts(f"node-{number}", allocatable_millis=500, fenced_cores=1))

    tracemalloc.start()
    try:
        for number in range(200):
            asked = demand(Tier.CRITICAL, number, f"shop/{number}")
            decisions.keep(ScoreRecord(asked, ledger.scores(asked, ledger.nodes), NOW))
        ledger.replace_nodes([])
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert taken < 2_200_000


def test_of_a_pod_that_is_asked_about_again_the_last_answer_is_kept():
    decisions = Decisions()

    for at in range(10):
        decisions.keep(decision("shop/web", 90, at))

    assert [answer.at for answer in decisions.of("shop/web")] == [9]


def test_another_asker_neither_replaces_nor_displaces_an_answer():
    decisions = Decisions(most_bytes=500_000)
    decisions.keep(decision("shop/web", 90, 1, "10.0.0.1"))

    for number in range(100):
        decisions.keep(decision("shop/web", 100, 2 + number, "10.6.6.6"))
        decisions.keep(decision(f"shop/{number}", 100, 2 + number, "10.6.6.6"))

    answers = decisions.of("shop/web")
    assert answers[-1].asker == "10.0.0.1"
    assert len(answers[-1].scores) == 90


def test_an_asker_with_many_ipv6_addresses_does_not_displace_the_answers_of_another():
    decisions = Decisions(most_bytes=500_000)
    decisions.keep(decision("shop/web", 90, 1, "2001:db8:0:2::1"))

    for number in range(100):
        decisions.keep(decision(f"shop/{number}", 50, 2 + number, f"2001:db8:0:1::{number:x}"))

    assert [answer.asker for answer in decisions.of("shop/web")] == ["2001:db8:0:2::1"]
    assert decisions.of("shop/99")
    assert decisions.size_bytes <= 500_000


def test_askers_of_one_network_neither_replace_nor_displace_the_answers_of_a_smaller_one():
    decisions = Decisions(most_bytes=500_000)
    decisions.keep(decision("shop/web", 90, 1, "2001:db8::1"))

    for number in range(100):
        decisions.keep(decision("shop/web", 100, 2 + number, "2001:db8::bad"))
        decisions.keep(decision(f"shop/{number}", 100, 2 + number, "2001:db8::bad"))

    assert decisions.of("shop/web")[-1].asker == "2001:db8::1"


def test_the_scores_that_are_cached_are_bounded_over_all_nodes(ledger, monkeypatch):
    monkeypatch.setattr("temper_plugin_density.placement.ledger.MOST_CACHED", 10)
    names = ("a", "b")

    for millis in range(100):
        ledger.scores(demand(Tier.CRITICAL, millis), names)

    assert [len(ledger._places[name].scores) for name in names] == [5, 5]


def test_an_explanation_has_the_best_node_first_and_says_where_the_pod_went(ledger):
    ledger.put_pod(on("a", "1"))
    ledger.put_pod(on("b", "new"))
    asked = demand(Tier.CRITICAL, 2000, "shop/new", tier_reason="because")
    scores = ledger.scores(asked, ("nowhere", "a", "b"))

    said = explain(ScoreRecord(asked, scores, NOW), ledger, "now")

    assert (said["pod"], said["tier"], said["tier_reason"]) == ("shop/new", "critical", "because")
    assert (said["bound_to"], said["at"]) == ("b", "2026-09-21T14:13:20Z")
    assert [(node["node"], node["score"]) for node in said["nodes"]] == [
        ("a", 7),
        ("b", 7),
        ("nowhere", 5),
    ]


def test_an_explanation_names_the_annotations_that_could_not_be_read(ledger):
    ledger.put_node(facts("a", problems=("what is wrong",)))

    said = explain(ScoreRecord(NEW, (score_of(ledger, NEW, "a"),), NOW), ledger, "now")

    assert said["nodes"][0]["problems"] == ["what is wrong"]
