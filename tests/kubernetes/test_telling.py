"""What a look at the node is turned into: annotations, and events that are told once."""

import re

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core import (
    Assignment,
    Layer,
    LayerKind,
    LayerPlan,
    Mode,
    Note,
    Origin,
    Pod,
    Status,
    Tier,
)
from temper_core.plan import ProfileCatalogue, decide
from temper_core.settings import Settings
from temper_core.testing import make_machine, make_pod, make_snapshot
from temper_plugin_kubernetes.annotations import (
    OURS,
    annotations_of,
    changes,
    removals,
    status_text,
)
from temper_plugin_kubernetes.events import EventSubject, event_object, happenings
from temper_plugin_kubernetes.pending_events import MOST_WAITING, TELL_AGAIN_S, PendingEvents

NODE = EventSubject("Node", "node-1", "node-uid")
DB = make_pod("db", "shop", cpu_request_millis=1500)
WEB = make_pod("web", "shop", cpu_request_millis=250)


def plan_of(*assigned, layers=(), notes=()):
    assignments = tuple(Assignment(pod, tier, "test") for pod, tier in assigned)
    return LayerPlan(make_machine(), layers, assignments, notes)


def seen(*assigned, status=None, **parts):
    status = status or Status(Mode.ENFORCING, generation=7, engine="scx_layered 1.1.4")
    return make_snapshot(plan=plan_of(*assigned, **parts), status=status)


def told_of(snapshot, uids=None):
    return {(each.subject.name, each.reason) for each in happenings(snapshot, NODE, uids or {})}


def test_the_annotations_say_the_state_and_what_each_tier_holds():
    snapshot = seen((DB, Tier.CRITICAL), (WEB, Tier.NORMAL), (WEB, Tier.NORMAL))

    said = annotations_of(snapshot).standing

    assert said["temper.codes/agent-status"] == "enforcing"
    assert said["temper.codes/agent-mode"] == "enforcing"
    assert said["temper.codes/config-generation"] == "7"
    assert said["temper.codes/tier-critical-pods"] == "1"
    assert said["temper.codes/tier-critical-cpu-millis"] == "1500"
    assert said["temper.codes/tier-normal-pods"] == "2"
    assert said["temper.codes/tier-normal-cpu-millis"] == "500"
    assert said["temper.codes/tier-background-pods"] == "0"


def test_before_the_first_plan_nothing_is_said_of_tiers_or_cores():
    told = annotations_of(make_snapshot(plan=None))

    said = {**told.standing, **told.moving}
    assert not any("tier" in key or "core" in key for key in said)


def layer_of(name, tier, cpus_min, kind=LayerKind.CONFINED):
    return Layer(name, kind, ((),), tier=tier, cpus_min=cpus_min)


@pytest.mark.parametrize(
    ("machine", "reserve", "budget", "unit"),
    [
        (make_machine(8, 2), 1, "7", "2"),
        (make_machine(4, 1), 2, "2", "1"),
        (make_machine(1, 2), 1, "0", "2"),
        (make_machine(1, 1), 3, "0", "1"),
    ],
)
def test_the_annotations_say_what_can_be_fenced(machine, reserve, budget, unit):
    snapshot = evolve(seen(), plan=LayerPlan(machine, ()), reserve_cores=reserve)

    said = annotations_of(snapshot).standing

    assert said["temper.codes/fence-budget-cores"] == budget
    assert said["temper.codes/threads-per-core"] == unit
    assert said["temper.codes/fenced-cores"] == "0"


def test_the_fenced_cores_are_those_of_critical_and_high_with_their_thread_groups():
    layers = (
        layer_of("mysql.connections.critical", Tier.CRITICAL, 4),
        layer_of("critical", Tier.CRITICAL, 2),
        layer_of("high", Tier.HIGH, 2, LayerKind.GROUPED),
        layer_of("normal", Tier.NORMAL, 6, LayerKind.GROUPED),
        layer_of("system", None, 2, LayerKind.GROUPED),
        layer_of("open", None, None, LayerKind.OPEN),
    )

    said = annotations_of(seen(layers=layers)).standing

    assert said["temper.codes/fenced-cores"] == "4"


def test_of_a_plan_as_it_is_compiled_the_whole_cores_are_told():
    pods = (
        evolve(DB, priority=1_000_000, cpu_request_millis=4500),
        evolve(WEB, priority=100_000, cpu_request_millis=500),
    )
    plan = decide(pods, ProfileCatalogue(), make_machine(cores=8), Settings())

    said = annotations_of(evolve(seen(), plan=plan)).standing

    assert said["temper.codes/fenced-cores"] == "4"
    assert said["temper.codes/fence-budget-cores"] == "7"


def test_a_fence_that_grows_is_written_and_one_that_stays_is_not():
    before = annotations_of(seen(layers=(layer_of("critical", Tier.CRITICAL, 2),)))
    grown = annotations_of(seen(layers=(layer_of("critical", Tier.CRITICAL, 4),)))
    present = {**before.standing, **before.moving}

    assert changes(before, present, is_refresh=False) == {}
    assert changes(grown, present, is_refresh=False) == {"temper.codes/fenced-cores": "2"}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (Status(Mode.ENFORCING), "enforcing"),
        (Status(Mode.SAFE_MODE, "requested", "because"), "safe_mode:requested"),
        (Status(Mode.OBSERVE_ONLY, "no_sched_ext"), "observe_only:no_sched_ext"),
    ],
)
def test_the_status_is_the_mode_and_its_reason(status, text):
    assert status_text(status) == text


def test_what_is_there_already_is_not_written():
    told = annotations_of(seen((DB, Tier.HIGH)))
    present = {**told.standing, **told.moving, "other": "kept"}

    assert changes(told, present, is_refresh=True) == {}


def test_what_moves_is_no_cause_to_write_but_goes_along():
    before = annotations_of(seen((DB, Tier.HIGH)))
    present = {**before.standing, **before.moving}
    later = evolve(seen((DB, Tier.HIGH)), at=1_760_000_000.0)
    changed = evolve(later, status=Status(Mode.SAFE_MODE, "requested", "an operator"))

    assert changes(annotations_of(later), present, is_refresh=False) == {}
    assert set(changes(annotations_of(later), present, is_refresh=True)) == {
        "temper.codes/tiers-updated"
    }
    assert changes(annotations_of(changed), present, is_refresh=False) == {
        "temper.codes/agent-status": "safe_mode:requested",
        "temper.codes/agent-mode": "safe_mode",
        "temper.codes/config-generation": "0",
        "temper.codes/agent-message": "an operator",
        "temper.codes/tiers-updated": "2025-10-09T08:53:20Z",
    }


def test_only_what_the_agent_wrote_is_taken_away():
    told = annotations_of(seen((DB, Tier.HIGH)))
    asked = {"temper.codes/safe-mode-requested": "true", "other": "kept"}

    taken = removals({**told.standing, **told.moving, **asked})

    assert set(taken) == set(OURS)
    assert set(taken.values()) == {None}


@given(
    st.lists(
        st.tuples(st.sampled_from(Tier), st.integers(min_value=0, max_value=10**6)), max_size=20
    )
)
@settings(max_examples=50)
def test_the_tiers_add_up_to_the_plan(assigned):
    pods = [
        (Pod(str(n), "a", str(n), cpu_request_millis=m), t) for n, (t, m) in enumerate(assigned)
    ]

    said = annotations_of(seen(*pods)).standing

    counts = [int(said[f"temper.codes/tier-{tier}-pods"]) for tier in Tier]
    millis = [int(said[f"temper.codes/tier-{tier}-cpu-millis"]) for tier in Tier]
    assert sum(counts) == len(assigned)
    assert sum(millis) == sum(m for _, m in assigned)


def test_the_members_of_a_demoted_layer_are_told_of_it():
    demoted = Layer(
        "critical",
        LayerKind.GROUPED,
        ((),),
        members=("shop/db",),
        group_members=("shop/web", "shop/db"),
        demoted=True,
        reason="wants 2 cores, 1 can be fenced",
    )
    snapshot = seen((DB, Tier.CRITICAL), (WEB, Tier.CRITICAL), layers=(demoted,))

    told = [each for each in happenings(snapshot, NODE, {}) if each.reason == "Demoted"]

    assert [each.subject.name for each in told] == ["db", "web"]
    assert told[0].message == (
        "layer critical is not fenced on this node: wants 2 cores, 1 can be fenced"
    )


def test_a_pod_that_a_real_plan_cannot_fence_is_told_of_it():
    pods = [evolve(DB, priority=1_000_000, cpu_request_millis=3000), WEB]
    plan = decide(pods, ProfileCatalogue(), make_machine(cores=2), Settings())
    status = Status(Mode.ENFORCING, generation=1)

    told = list(happenings(make_snapshot(plan=plan, status=status), NODE, {}))

    (demoted,) = [each for each in told if each.reason == "Demoted"]
    assert demoted.subject.name == "db"
    assert "critical" in demoted.message


def test_a_profile_that_is_not_applied_is_told_to_its_pod_by_the_uid_that_the_cluster_knows():
    note = Note("profile_not_applied", "shop/db", "profile 'mysql': 64 cores do not fit")
    snapshot = seen((DB, Tier.HIGH), notes=(note,))

    (told,) = [
        each
        for each in happenings(snapshot, NODE, {DB.uid: "uid-of-the-mirror"})
        if each.subject.kind == "Pod"
    ]

    assert (told.reason, told.message) == ("ProfileNotApplied", note.message)
    assert told.subject == EventSubject("Pod", "db", "uid-of-the-mirror", "shop")


@pytest.mark.parametrize("changed", [{"origin": Origin.UNIT}, {"namespace": ""}])
def test_what_the_cluster_does_not_know_has_no_events(changed):
    pod = evolve(DB, **changed)
    note = Note("profile_not_applied", pod.key, "odd")

    assert told_of(seen((pod, Tier.HIGH), notes=(note,))) == {("node-1", "Enforcing")}


def test_in_safe_mode_the_node_alone_has_something_to_tell():
    note = Note("profile_not_applied", "shop/db", "odd")
    status = Status(Mode.SAFE_MODE, "ejected", "the engine was ejected")

    (told,) = happenings(seen((DB, Tier.HIGH), notes=(note,), status=status), NODE, {})

    assert (told.reason, told.is_warning) == ("SafeMode", True)
    assert told.message == "safe mode (ejected): the engine was ejected"


def test_a_story_is_told_when_it_begins_and_not_while_it_goes_on():
    story, snapshot = PendingEvents(), seen((DB, Tier.HIGH))

    story.goes_on(happenings(snapshot, NODE, {}), 100.0)
    first = story.next
    story.drop_next()
    story.goes_on(happenings(snapshot, NODE, {}), 105.0)

    assert first.reason == "Enforcing"
    assert story.next is None


@pytest.mark.parametrize(("after_s", "is_told"), [(TELL_AGAIN_S - 1, False), (TELL_AGAIN_S, True)])
def test_what_ends_and_begins_again_is_told_again_after_a_while(after_s, is_told):
    story, snapshot = PendingEvents(), seen((DB, Tier.HIGH))
    story.goes_on(happenings(snapshot, NODE, {}), 100.0)
    story.drop_next()

    story.goes_on([], 101.0)
    story.goes_on(happenings(snapshot, NODE, {}), 100.0 + after_s)

    assert (story.next is not None) is is_told


def test_what_waits_to_be_told_is_bounded():
    pods = [make_pod(f"p{number}", "shop") for number in range(MOST_WAITING + 50)]
    notes = tuple(Note("profile_not_applied", pod.key, "odd") for pod in pods)
    snapshot = seen(*((pod, Tier.HIGH) for pod in pods), notes=notes)
    story, told = PendingEvents(), 0

    story.goes_on(happenings(snapshot, NODE, {}), 0.0)
    while story.next is not None:
        story.drop_next()
        told += 1

    assert told == MOST_WAITING


@given(name=st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True))
@settings(max_examples=100)
def test_the_name_of_an_event_is_one_that_the_server_takes(name):
    (told,) = happenings(make_snapshot(plan=None), EventSubject("Node", name, "uid"), {})

    body = event_object(told, "2026-01-01T00:00:00Z", "node-1")

    made = body["metadata"]["name"]
    assert len(made) <= 253
    assert re.search(r"[a-z0-9]\.temper-[0-9a-f]{8}$", made)
