from hypothesis import given
from hypothesis import strategies as st

from temper_core.engine.matching import holds
from temper_core.profiles.conditions import GroupTarget, Part, own_conditions, tier_conditions
from temper_core.records.thread_groups import ThreadMatch
from temper_core.records.threads import ThreadIdentity

NAMES = ["a", "ab", "abc", "b", "ba"]
THREADS = [
    ThreadIdentity("x/", comm, process, is_leader=leader)
    for comm in (*NAMES, "z")
    for process in (*NAMES, "z")
    for leader in (True, False)
]

maybe_name = st.none() | st.sampled_from(NAMES)
matches = st.builds(
    ThreadMatch, comm_prefix=maybe_name, process=maybe_name, leader=st.none() | st.booleans()
).filter(lambda match: match != ThreadMatch())
goals = st.sampled_from(GroupTarget)


@st.composite
def profiles(draw):
    named = draw(
        st.lists(
            st.builds(Part, st.lists(matches, min_size=1, max_size=2).map(tuple), goals), max_size=4
        )
    )
    rest = [Part((), draw(goals), takes_rest=True)] if draw(st.booleans()) else []
    return [*named, *rest]


def first_goal(parts, thread):
    for part in parts:
        if part.takes_rest or any(is_match(match, thread) for match in part.matches):
            return part.goal, part
    return GroupTarget.TIER, None


def is_match(match, thread):
    return (
        thread.comm.startswith(match.comm_prefix or "")
        and thread.process.startswith(match.process or "")
        and match.leader in (None, thread.is_leader)
    )


def seen_goal(parts, thread):
    """Go through the layers as the engine does: groups in order, the tier, Open."""
    for position, part in enumerate(parts):
        if part.goal is GroupTarget.OWN and is_any(own_conditions(parts, position), thread):
            return GroupTarget.OWN, part
    return (GroupTarget.TIER if is_any(tier_conditions(parts), thread) else GroupTarget.OPEN), None


def is_any(conditions, thread):
    return any(all(holds(each, thread) for each in condition) for condition in conditions)


@given(profiles())
def test_the_engine_puts_every_thread_where_the_profile_wants_it(parts):
    for thread in THREADS:
        goal, part = first_goal(parts, thread)
        seen, seen_part = seen_goal(parts, thread)

        assert seen is goal
        assert goal is not GroupTarget.OWN or seen_part is part


def test_a_tier_without_yielding_groups_needs_no_condition():
    part = Part((ThreadMatch(comm_prefix="a"),), GroupTarget.OWN)

    assert tier_conditions([part]) == ((),)


def test_a_tier_that_keeps_no_thread_has_no_block():
    assert tier_conditions([Part((), GroupTarget.OWN, takes_rest=True)]) == ()
    assert tier_conditions([Part((), GroupTarget.OPEN, takes_rest=True)]) == ()
