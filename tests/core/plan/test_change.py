"""What a wanted plan changes of the plan in force, and which way it takes."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.plan import decide, render_engine
from temper_core.plan.change import (
    ChangeKind,
    Move,
    Reason,
    change_between,
    misfits,
    moves_between,
    same_layers,
)
from temper_core.records.engine_matchers import Matcher
from temper_core.records.layers import Layer
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.steering import FIXED_HINTS, Steering
from temper_core.records.tiers import LayerKind, Tier
from temper_core.testing import make_machine, make_pod
from tests.core.plan.nodes import nodes

HINTED = ((Matcher("HintEquals", 3),),)
MACHINE = make_machine(8, 2)


def a_layer(name="critical", least=4, most=6, kind=LayerKind.CONFINED, **changes):
    given = {"tier": Tier.CRITICAL, "matches": HINTED, "reason": "its pods"}
    return Layer(name, kind, cpus_min=least, cpus_max=most, **{**given, **changes})


def a_group(least=2, most=None, **changes):
    return a_layer("db.hot.critical", least, most or least, **changes)


def an_open(name="open", **changes):
    return a_layer(name, None, None, LayerKind.OPEN, **{"tier": None, **changes})


def a_plan(*layers, **changes):
    return LayerPlan(MACHINE, layers, **{"hints": FIXED_HINTS, **changes})


def told(reasons):
    return [(reason.code.value, reason.layer, reason.is_urgent) for reason in reasons]


URGENT, LATER = True, False
GROUPED = LayerKind.GROUPED


@pytest.mark.parametrize(
    ("in_force", "wanted", "expected"),
    [
        (a_layer(), a_layer(), None),
        (a_layer(), a_layer(least=4, most=16), None),
        (a_layer(), a_layer(least=4, most=4), None),
        (a_layer(), a_layer(least=5, most=9), None),
        (a_layer(), a_layer(least=6, most=8), ("drift", LATER)),
        (a_layer(), a_layer(least=7, most=8), ("growth", URGENT)),
        (a_layer(), a_layer(least=3), ("surplus", LATER)),
        (a_layer(least=0), a_layer(least=6), ("drift", LATER)),
        (a_group(exclusive=True), a_group(3, exclusive=True), ("growth", URGENT)),
        (a_group(exclusive=True), a_group(1, exclusive=True), ("surplus", LATER)),
        (a_layer(), a_layer(slice_us=700), ("settings", URGENT)),
        (a_layer(), a_layer(weight=7), ("settings", URGENT)),
        (a_layer(), a_layer(protected=True), ("settings", URGENT)),
        (a_layer(), a_layer(preempt=True), ("settings", URGENT)),
        (a_layer(), a_layer(exclusive=True), ("settings", URGENT)),
        (a_layer(), a_layer(util_range=(0.1, 0.2)), ("settings", URGENT)),
        (a_layer(), a_layer(kind=GROUPED), ("settings", URGENT)),
        (a_layer(), a_layer(matches=((Matcher("HintEquals", 9),),)), ("settings", URGENT)),
        (a_layer(), a_layer(kind=GROUPED, demoted=True), ("growth", URGENT)),
        (a_layer(kind=GROUPED, demoted=True), a_layer(), ("recovery", LATER)),
        (a_layer(tier=None), an_open("critical"), ("surplus", LATER)),
        (an_open("critical"), a_layer(tier=None), ("drift", LATER)),
        (a_layer(), a_layer(reason="other pods", members=("a/b",)), None),
    ],
)
def test_a_layer_in_force_serves_unless_there_is_a_reason(in_force, wanted, expected):
    reasons = misfits(a_plan(in_force, an_open()), a_plan(wanted, an_open()))

    assert [(code, urgent) for code, _, urgent in told(reasons)] == ([expected] if expected else [])
    assert all(reason.layer == wanted.name and reason.message for reason in reasons)


def test_a_layer_that_threads_wait_for_is_urgent_and_one_that_nobody_needs_is_not():
    old, new = a_plan(a_layer("high"), an_open()), a_plan(a_layer(members=("a/b",)), an_open())

    assert told(misfits(old, new)) == [("missing", "critical", True), ("surplus", "high", False)]
    assert "4 to 6 CPUs" in misfits(old, new)[1].message


def test_layers_that_stand_by_are_no_reason_wherever_they_are_missing():
    standing = a_layer("normal", 0, 2, GROUPED, tier=Tier.NORMAL)
    more, less = a_plan(standing, an_open()), a_plan(an_open())

    assert misfits(more, less) == misfits(less, more) == ()


def test_slack_lets_a_tier_hold_more_than_it_needs_but_no_exclusive_group():
    old = a_plan(a_layer(least=6), a_group(4, exclusive=True), an_open())
    new = a_plan(a_layer(least=4), a_group(2, exclusive=True), an_open())

    assert told(misfits(old, new, slack=2)) == [("surplus", "db.hot.critical", False)]
    assert len(misfits(old, new, slack=1)) == 2


@pytest.mark.parametrize(
    ("millis", "expected"), [(4_000, []), (4_001, [("drift", "normal", False)])]
)
def test_a_layer_that_always_owns_nothing_is_measured_by_its_pods_requests(millis, expected):
    pod = make_pod(name="web", cpu_request_millis=millis)
    normal = a_layer("normal", 0, 4, GROUPED, tier=Tier.NORMAL)
    larger = attrs.evolve(normal, cpus_max=12)
    wanted = a_plan(larger, an_open(), assignments=(Assignment(pod, Tier.NORMAL, "because"),))

    assert told(misfits(a_plan(normal, an_open()), wanted)) == expected


def test_other_cpus_and_another_way_of_telling_threads_apart_are_urgent():
    old = a_plan(a_layer(), an_open())

    other_machine = attrs.evolve(old, machine=make_machine(4, 2))
    other_numbers = attrs.evolve(old, machine=make_machine(8, 2, sockets=2))
    static = attrs.evolve(old, hints={})

    assert told(misfits(old, other_machine)) == [("machine", "", True)]
    assert "planned for 4 cores, in force for 8" in misfits(old, other_machine)[0].message
    assert "numbered or grouped" in misfits(old, other_numbers)[0].message
    assert told(misfits(old, static)) == told(misfits(static, old)) == [("steering", "", True)]


def kind_of(in_force, wanted, **given):
    return change_between(in_force, wanted, **{"can_swap": True, **given}).kind


def test_the_first_plan_is_a_start():
    assert kind_of(None, a_plan(an_open())) is ChangeKind.START


def test_the_same_layers_need_hints_only_where_threads_move():
    old = a_plan(a_layer(), an_open(members=("a/b",)))
    moved = a_plan(a_layer(members=("a/b",)), an_open())

    assert kind_of(old, old) is ChangeKind.NONE
    assert kind_of(old, moved) is ChangeKind.HINTS
    assert change_between(old, moved, can_swap=True).moves == (
        Move("a/b", ("open",), ("critical",)),
    )


def test_pods_that_are_found_elsewhere_need_hints_though_they_stay_in_their_layer(steered, pod):
    old = steered(pod("a", 100_000, 500))
    new = steered(pod("a", 100_000, 500, cgroups=("kubepods.slice/a/",)))

    change = change_between(old, new, can_swap=True)

    assert (change.kind, change.moves) == (ChangeKind.HINTS, ())
    assert kind_of(attrs.evolve(old, steering=()), new) is ChangeKind.NONE


def test_pods_of_open_come_and_go_without_hints_where_there_are_none(plan, pod):
    old, new = plan(pod("a")), plan(pod("a"), pod("b"))

    change = change_between(old, new, can_swap=True)

    assert change.kind is ChangeKind.NONE
    assert change.moves == (Move("default/b", (), ("open",)),)


def test_layers_that_serve_need_no_engine_whatever_their_sizes():
    old, new = a_plan(a_layer(), an_open()), a_plan(a_layer(most=12), an_open())

    assert kind_of(old, new) is ChangeKind.HINTS


@pytest.mark.parametrize(
    ("can_swap", "expected"), [(True, ChangeKind.WARM_SWAP), (False, ChangeKind.COLD_RESTART)]
)
def test_what_is_urgent_takes_an_engine_and_the_swap_where_it_can_be_had(can_swap, expected):
    old, new = a_plan(a_layer(), an_open()), a_plan(a_layer(least=9, most=9), an_open())

    change = change_between(old, new, can_swap=can_swap)

    assert change.kind is expected
    assert change.kind.needs_engine
    assert told(change.reasons) == [("growth", "critical", True)]


def test_what_is_not_urgent_is_told_and_takes_an_engine_once_it_is_due():
    old, new = a_plan(a_layer(), an_open()), a_plan(a_layer(least=2), an_open())

    early = change_between(old, new, can_swap=True)

    assert (early.kind, told(early.reasons)) == (
        ChangeKind.HINTS,
        [("surplus", "critical", False)],
    )
    assert kind_of(old, new, is_due=True) is ChangeKind.WARM_SWAP


def test_a_plan_without_hints_takes_an_engine_for_every_byte(plan, pod):
    old = plan(pod("a", 1_000_000, 500))
    new = plan(pod("a", 1_000_000, 500), pod("b", 1_000_000, 500))

    change = change_between(old, new, can_swap=True)

    assert change.kind is ChangeKind.WARM_SWAP
    assert "matchers differ" in change.reasons[0].message
    assert change.moves == (Move("default/b", (), ("critical",)),)


def test_a_plan_without_hints_that_only_sizes_differently_still_says_why():
    old = a_plan(a_layer(), an_open(), hints={})
    new = a_plan(a_layer(most=12), an_open(), hints={})

    change = change_between(old, new, can_swap=True)

    assert change.kind is ChangeKind.WARM_SWAP
    assert [type(reason) for reason in change.reasons] == [Reason]


def test_pods_that_come_and_go_and_share_layers_are_moves(plan, pod, mysql, with_image):
    gone = pod("gone", 1_000_000, 100)
    database = pod("db", 1_000_000, 1500)
    old = plan(gone, database, profiles=[mysql])

    new = plan(with_image(database, "mysql:8"), profiles=[mysql])

    assert moves_between(old, new) == (
        Move("default/db", ("critical",), ("mysql.connections.critical", "critical", "open")),
        Move("default/gone", ("critical",), ()),
    )


def steered(node, pods=None, **steering):
    given_pods, catalogue, machine, chosen = node
    pods = given_pods if pods is None else pods
    return decide(pods, catalogue, machine, chosen, steering=Steering(**steering))


@st.composite
def changing_nodes(draw):
    """A node, and the pods that it has later on."""
    node = draw(nodes(counts=(0, 1, 2, 5, 20, 60)))
    later = draw(nodes(counts=(0, 1, 2, 5, 20, 60)))[0]
    kept = [pod for pod in node[0] if draw(st.booleans())] if len(node[0]) < 10 else node[0][::2]
    return node, [*kept, *later]


FEW = settings(max_examples=40, deadline=None)


@FEW
@given(changing_nodes())
def test_every_plan_serves_itself(changing):
    node, _ = changing
    plan = steered(node)

    assert misfits(plan, plan) == ()
    assert change_between(plan, plan, can_swap=True).kind is ChangeKind.NONE


@FEW
@given(changing_nodes())
def test_without_an_urgent_reason_the_held_plan_has_every_layer_that_is_wanted(changing):
    node, later = changing
    first = steered(node)
    wanted = steered(node, later, hints=first.hints)
    held = steered(node, later, hints=first.hints, in_force=first.layers, hold=True)

    change = change_between(first, wanted, can_swap=True, held=held)

    assert render_engine(held) == render_engine(first)
    assert same_layers(held, first)
    if not change.kind.needs_engine:
        for layer in wanted.layers:
            if not (layer.members or layer.group_members):
                continue
            assert (layer.cpus_min or 0) <= (held.layer_named(layer.name).cpus_max or 8192)


@FEW
@given(changing_nodes())
def test_the_engine_can_tell_two_plans_apart_exactly_where_their_bytes_differ(changing):
    node, later = changing
    first, wanted = steered(node), steered(node, later)

    assert same_layers(first, wanted) == (render_engine(first) == render_engine(wanted))
