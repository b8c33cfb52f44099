"""What a decider wants of the engine when pods change, and what it steers by meanwhile."""

import random

import pytest

from temper_core.decide.decider import Decider
from temper_core.plan import ProfileCatalogue, render_engine
from temper_core.plan.change import ChangeKind
from temper_core.records.pods import Container
from temper_core.records.profiles import Fingerprint, LoadedProfile, ProfileFailure, WorkloadProfile
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch, Treatment
from temper_core.scheduler.change.reload_policy import ReloadPolicy
from temper_core.settings.models import Settings
from temper_core.settings.tiers import PlanSettings
from temper_core.testing import make_machine, make_pod

CRITICAL, HIGH, NORMAL = 1_000_000, 100_000, 1
LATER = 600.0


def a_profile(name, *treatments):
    groups = [
        ThreadGroup(f"g{n}", (ThreadMatch(comm_prefix=f"t{n}"),), treatment)
        for n, treatment in enumerate(treatments)
    ]
    return with_groups(name, *groups)


def with_groups(name, *groups):
    images = Fingerprint(images=(f"{name}:*",))
    return LoadedProfile(WorkloadProfile(id=name, thread_groups=groups, fingerprint=images), "test")


CATALOGUE = ProfileCatalogue(
    (a_profile("web", Treatment.EXCLUSIVE), a_profile("db", Treatment.EXCLUSIVE, Treatment.LATENCY))
)


def a_pod(name, priority=None, millis=0, image="other:1"):
    containers = (Container("main", image),)
    return make_pod(name=name, priority=priority, cpu_request_millis=millis, containers=containers)


@pytest.fixture
def decider_of(host):
    def build(cores=8, **plan):
        settings = Settings(plan=PlanSettings(**plan))
        return Decider(settings, make_machine(cores, 2), host, CATALOGUE)

    return build


@pytest.fixture
def decider(decider_of):
    return decider_of()


def in_force_for(decider, *pods):
    return decider.decide(pods, steered=True).wanted


def test_without_an_engine_the_plan_is_wanted_as_it_is(decider):
    decision = decider.decide([a_pod("a", HIGH, 500)], steered=True)

    assert decision.change.kind is ChangeKind.START
    assert decision.by_now is decision.wanted
    assert decision.wanted.is_steered
    assert not decider.decide([]).wanted.is_steered


def test_the_same_pods_change_nothing(decider):
    pods = [a_pod("a", HIGH, 500)]
    first = in_force_for(decider, *pods)

    decision = decider.decide(pods, first, steered=True)

    assert decision.change.kind is ChangeKind.NONE
    assert decision.held is None
    assert decision.wanted == first


def test_a_pod_that_the_layers_in_force_serve_changes_no_byte(decider):
    first = in_force_for(decider, a_pod("a", CRITICAL, 1500))

    decision = decider.decide([a_pod("b", CRITICAL, 3500)], first, steered=True)

    assert decision.change.kind is ChangeKind.HINTS
    assert render_engine(decision.wanted) == render_engine(first)
    assert decision.wanted.layer_named("critical").members == ("default/b",)
    assert decision.held is None


def test_a_pod_that_they_do_not_serve_wants_an_engine_and_is_steered_meanwhile(decider):
    first = in_force_for(decider, a_pod("a", CRITICAL, 1500))

    decision = decider.decide([a_pod("a", CRITICAL, 9000)], first, steered=True)

    assert decision.change.kind is ChangeKind.WARM_SWAP
    assert decision.wanted.layer_named("critical").cpus_min == 10
    assert render_engine(decision.held) == render_engine(first)
    assert decision.by_now is decision.held
    assert ("waiting", "critical") in {(note.code, note.subject) for note in decision.held.notes}


def test_where_no_swap_can_be_had_the_engine_restarts(decider):
    first = in_force_for(decider, a_pod("a", CRITICAL, 1500))

    decision = decider.decide([a_pod("a", CRITICAL, 9000)], first, steered=True, can_swap=False)

    assert decision.change.kind is ChangeKind.COLD_RESTART


def test_a_layer_that_became_too_large_shrinks_only_after_a_while(decider):
    first = in_force_for(decider, a_pod("a", CRITICAL, 9000))
    small = [a_pod("a", CRITICAL, 500)]

    at_once = decider.decide(small, first, steered=True, now=100.0)
    still = decider.decide(small, first, steered=True, now=100.0 + LATER - 1)
    due = decider.decide(small, first, steered=True, now=100.0 + LATER)

    assert at_once.change.kind is still.change.kind is ChangeKind.HINTS
    assert [reason.code for reason in at_once.change.reasons] == ["surplus"]
    assert at_once.again_at == still.again_at == 100.0 + LATER
    assert render_engine(still.wanted) == render_engine(first)
    assert due.change.kind is ChangeKind.WARM_SWAP
    assert due.wanted.layer_named("critical").cpus_min == 2


def test_a_fence_comes_back_a_minute_after_the_pod_that_took_it_has_left(decider):
    db, guest = a_pod("db", CRITICAL, 3000), a_pod("guest", CRITICAL, 12_000)
    first = in_force_for(decider, db)
    demoted = decider.decide([db, guest], first, steered=True, now=0.0)

    left = decider.decide([db], demoted.wanted, steered=True, now=100.0)
    due = decider.decide([db], demoted.wanted, steered=True, now=160.0)

    assert demoted.wanted.layer_named("critical").demoted
    assert (left.change.kind, left.again_at) == (ChangeKind.HINTS, 160.0)
    assert "recovery" in [reason.code for reason in left.change.reasons]
    assert due.change.kind is ChangeKind.WARM_SWAP
    assert not due.wanted.layer_named("critical").demoted


def test_a_pod_that_comes_and_goes_does_not_use_up_the_reloads_of_an_hour(decider):
    db, guest = a_pod("db", CRITICAL, 3000), a_pod("guest", CRITICAL, 12_000)
    plan, reloads, waits = in_force_for(decider, db), 0, []

    now = 0.0
    while now < 3600.0:
        plan = decider.decide([db, guest], plan, steered=True, now=now).wanted
        left = decider.decide([db], plan, steered=True, now=now + 1)
        waits.append(left.again_at - now - 1)
        now = left.again_at
        plan = decider.decide([db], plan, steered=True, now=now).wanted
        reloads += 2

    assert waits[:5] == [60.0, 120.0, 240.0, 480.0, LATER]
    assert reloads <= Settings().scheduler.reloads_per_hour


def test_an_edited_profile_costs_hints_only_where_the_layers_in_force_serve_it(decider):
    pods = [a_pod("a", CRITICAL, 3000, "web:1")]
    first = in_force_for(decider, *pods)
    renamed = ThreadGroup("g0", (ThreadMatch(comm_prefix="new"),), Treatment.EXCLUSIVE)

    decider.follow(ProfileCatalogue((with_groups("web", renamed),)))
    decision = decider.decide(pods, first, steered=True)

    (place,) = [each for each in decision.wanted.steering if each.pod]
    assert decision.change.kind is ChangeKind.HINTS
    assert render_engine(decision.wanted) == render_engine(first)
    assert [rule.match for rule in place.rules] == [ThreadMatch(comm_prefix="new"), None]


def test_a_group_that_an_edit_adds_wants_an_engine_at_once(decider):
    pods = [a_pod("a", CRITICAL, 3000, "web:1")]
    first = in_force_for(decider, *pods)

    decider.follow(ProfileCatalogue((a_profile("web", Treatment.LATENCY, Treatment.EXCLUSIVE),)))
    decision = decider.decide(pods, first, steered=True)

    assert decision.change.kind is ChangeKind.WARM_SWAP
    assert decision.wanted.layer_named("web.g1.critical") is not None


def test_what_stood_under_former_profiles_begins_anew_but_not_for_another_failure(decider):
    small = [a_pod("a", CRITICAL, 500)]
    first = in_force_for(decider, a_pod("a", CRITICAL, 9000))
    decider.decide(small, first, steered=True, now=0.0)

    decider.follow(ProfileCatalogue(CATALOGUE.profiles, (ProfileFailure("x.toml", "", "odd"),)))
    told = decider.decide(small, first, steered=True, now=100.0)
    decider.follow(ProfileCatalogue(CATALOGUE.profiles[:1]))
    edited = decider.decide(small, first, steered=True, now=200.0)

    assert (told.again_at, edited.again_at) == (LATER, 200.0 + LATER)


def test_a_break_makes_the_while_begin_anew(decider):
    large, small = [a_pod("a", CRITICAL, 9000)], [a_pod("a", CRITICAL, 500)]
    first = in_force_for(decider, *large)

    decider.decide(small, first, steered=True, now=0.0)
    between = decider.decide(large, first, steered=True, now=LATER - 1)
    again = decider.decide(small, first, steered=True, now=LATER)

    assert between.again_at is None
    assert again.change.kind is ChangeKind.HINTS
    assert again.again_at == 2 * LATER


def test_what_is_urgent_takes_the_rest_along(decider):
    first = in_force_for(decider, a_pod("a", CRITICAL, 9000))
    pods = [a_pod("a", CRITICAL, 500), a_pod("b", HIGH, 9000)]

    decision = decider.decide(pods, first, steered=True, now=1.0)

    assert decision.change.kind is ChangeKind.WARM_SWAP
    assert decision.wanted.layer_named("critical").cpus_min == 2
    assert decision.again_at is None


def test_a_groups_layer_that_was_just_given_up_is_not_urgent_again(decider):
    web = a_pod("web", HIGH, 500, "web:1")
    with_group = in_force_for(decider, web)
    without = in_force_for(decider, a_pod("a", HIGH, 500))

    first_time = decider.decide([web], without, steered=True, now=0.0)
    decider.decide([web], with_group, steered=True, now=10.0)
    decider.decide([web], None, steered=True, now=15.0)
    given_up = decider.decide([web], without, steered=True, now=20.0)

    assert first_time.change.kind is ChangeKind.WARM_SWAP
    assert given_up.change.kind is ChangeKind.HINTS
    assert given_up.again_at == 20.0 + LATER
    assert given_up.wanted.layer_named("high").members == ("default/web",)


def test_a_time_without_an_engine_starts_the_while_anew(decider):
    small = [a_pod("a", CRITICAL, 500)]
    first = in_force_for(decider, a_pod("a", CRITICAL, 9000))
    decider.decide(small, first, steered=True, now=0.0)

    decider.decide(small, None, steered=True, now=10.0)
    back = decider.decide(small, first, steered=True, now=LATER + 1)

    assert back.change.kind is ChangeKind.HINTS


def test_hints_are_never_given_to_another_name(decider):
    web, db = a_pod("web", HIGH, 500, "web:1"), a_pod("db", HIGH, 500, "db:1")

    first = in_force_for(decider, web)
    second = in_force_for(decider, db)
    third = in_force_for(decider, web, db)

    assert first.hints["web.g0.high"] == third.hints["web.g0.high"]
    assert second.hints["db.g0.high"] == third.hints["db.g0.high"]
    assert len(set(third.hints.values())) == len(third.hints)


def test_the_hints_of_the_engine_in_force_are_kept(decider, decider_of):
    db, web = a_pod("db", HIGH, 500, "db:1"), a_pod("web", HIGH, 500, "web:1")
    foreign = in_force_for(decider, db, web)

    decision = decider_of().decide([web, db], foreign, steered=True)

    assert decision.wanted.hints == foreign.hints
    assert decision.change.kind is ChangeKind.NONE


@pytest.mark.parametrize("steered", [True, False])
def test_another_way_of_telling_threads_apart_takes_an_engine_and_nothing_is_held(decider, steered):
    pods = [a_pod("a", HIGH, 500)]
    first = decider.decide(pods, steered=not steered).wanted

    decision = decider.decide(pods, first, steered=steered)

    assert decision.change.kind is ChangeKind.WARM_SWAP
    assert decision.held is None
    assert decision.wanted.is_steered is steered


def test_a_plan_for_other_cpus_is_not_held(decider, decider_of):
    pods = [a_pod("a", HIGH, 500)]
    first = in_force_for(decider, *pods)

    decision = decider_of(cores=4).decide(pods, first, steered=True)

    assert decision.change.kind is ChangeKind.WARM_SWAP
    assert decision.held is None


def test_an_edited_profile_moves_threads_by_hints_alone(decider):
    web = a_pod("web", HIGH, 500, "web:1")
    first = in_force_for(decider, web)
    calm = a_profile("web", Treatment.NORMAL)

    decider.catalogue = ProfileCatalogue((calm,))
    decision = decider.decide([web], first, steered=True)

    assert decision.change.kind is ChangeKind.HINTS
    assert [(move.before, move.after) for move in decision.change.moves] == [
        (("web.g0.high", "high"), ("high",))
    ]


def change_at_random(chance, pods, number):
    """Let a pod come, go, or become another."""
    name = f"pod-{number}"
    if len(pods) > 40 or (len(pods) > 20 and chance.random() < 0.5):
        del pods[chance.choice(list(pods))]
    elif pods and chance.random() < 0.3:
        name = chance.choice(list(pods))
    priority = chance.choice([None, -1000, 0, 0, NORMAL, NORMAL, HIGH, HIGH, CRITICAL])
    pods[name] = a_pod(name, priority, chance.choice([0, 50, 100, 250, 500]))


def test_a_thousand_random_changes_within_an_hour_take_few_engines(decider_of):
    chance, decider, pods = random.Random(1), decider_of(cores=32), {}
    lasting = [a_pod("db", CRITICAL, 1500, "db:1"), a_pod("web", HIGH, 500, "web:1")]
    policy = ReloadPolicy(quiet_s=2.0, min_interval_s=30.0, reloads_per_hour=20)
    in_force, engines = decider.decide([], steered=True).wanted, 0

    for number in range(1000):
        now = number * 3.0
        change_at_random(chance, pods, number)
        decision = decider.decide([*lasting, *pods.values()], in_force, steered=True, now=now)
        assert {layer.name for layer in decision.by_now.layers} == {
            layer.name for layer in in_force.layers
        }
        if decision.change.kind.needs_engine:
            policy.changed(now)
            if policy.due_at() <= now:
                policy.reloaded(now)
                engines += 1
                in_force = decision.wanted
        else:
            policy.settled()
            in_force = decision.wanted

    assert 1 <= engines <= 5
