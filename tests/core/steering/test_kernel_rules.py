"""Which rule counts for a thread; the kernel's own answer, for real threads in real cgroups."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temper_core.errors import BpfError
from temper_core.records.steering import NO_HINT
from temper_core.steering.kernel import MOST_POLICIES, KernelRule, Policy
from tests.core.steering.processes import DEFAULT, STAYS, hints_of, named, number, threads_of

NAMES = st.text(alphabet="ab1", max_size=17)
GIVEN_NAMES = st.text(alphabet="ab1", min_size=1, max_size=15)
RULES = st.builds(
    KernelRule,
    hint=st.integers(1, 1024),
    comm=NAMES,
    process=NAMES,
    leader=st.sampled_from([None, True, False]),
    root_only=st.booleans(),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    rules=st.lists(RULES, max_size=16),
    names=st.tuples(GIVEN_NAMES, GIVEN_NAMES),
    of_leader=st.booleans(),
)
def test_the_first_rule_counts_of_which_all_holds(look, own_names, rules, names, of_leader):
    comm, process = names
    kernel, thread = own_names(comm, process)
    kernel.set_table({}, rules, DEFAULT)

    found = look(os.getpid() if of_leader else thread)

    name = process if of_leader else comm
    fitting = (
        rule.hint
        for rule in rules
        if name.startswith(rule.comm)
        and process.startswith(rule.process)
        and rule.leader in (None, of_leader)
        and (os.geteuid() == 0 or not rule.root_only)
    )
    assert (found.comm, found.expected) == (name, next(fitting, DEFAULT))


@pytest.fixture
def own_names(kernel, thread):
    """Name a thread of this process, and the process; which has its own name back in the end."""
    process = Path("/proc/self/comm")
    before = process.read_text().removesuffix("\n")

    def give(comm, leader):
        Path(f"/proc/self/task/{thread}/comm").write_text(comm)
        process.write_text(leader)
        return kernel, thread

    yield give
    process.write_text(before)


def test_the_policy_of_the_innermost_cgroup_counts(kernel, make_cgroup, spawn, look):
    pod, container, inside = make_cgroup(), make_cgroup("c"), make_cgroup("c/deeper")
    kernel.set_table({number(pod): Policy((), 40), number(container): Policy((), 41)}, (), DEFAULT)

    deep, shallow = named(spawn(*STAYS, cgroup=inside)), named(spawn(*STAYS, cgroup=pod))

    assert (look(deep).hint, look(shallow).hint) == (41, 40)


def test_a_policy_of_the_root_covers_every_cgroup(kernel, unified, make_cgroup, spawn, look):
    kernel.set_table({number(unified): Policy((), 40)}, (), DEFAULT)

    inside, outside = named(spawn(*STAYS, cgroup=make_cgroup())), named(spawn(*STAYS))

    assert (look(inside).hint, look(outside).hint) == (40, 40)


@pytest.mark.parametrize("levels", [1, 20, 23, 24, 25, 47, 48, 49, 100])
def test_cgroups_are_followed_through_all_levels(kernel, make_cgroup, spawn, look, levels):
    pod = folder = make_cgroup()
    for level in range(levels):
        folder = make_cgroup("/".join("d" * (level + 1)))
    kernel.set_table({number(pod): Policy((), 40)}, (), DEFAULT)

    pid = named(spawn(*STAYS, cgroup=folder))

    assert look(pid).hint == 40


def test_of_many_levels_the_innermost_policy_counts(kernel, make_cgroup, spawn, look):
    pod = make_cgroup()
    folders = [make_cgroup("/".join("d" * (level + 1))) for level in range(60)]
    policies = {number(pod): Policy((), 40), number(folders[40]): Policy((), 41)}
    kernel.set_table(policies, (), DEFAULT)

    above = named(spawn(*STAYS, cgroup=folders[39]))
    below = named(spawn(*STAYS, cgroup=folders[-1]))

    assert (look(above).hint, look(below).hint) == (40, 41)


def test_a_policy_for_one_cgroup_exactly_leaves_those_below_alone(kernel, make_cgroup, spawn, look):
    pod, container = make_cgroup(), make_cgroup("c")
    kernel.set_table({number(pod): Policy((), 40, exact=True)}, (), DEFAULT)

    outside, inside = named(spawn(*STAYS, cgroup=pod)), named(spawn(*STAYS, cgroup=container))

    assert (look(outside).hint, look(inside).hint) == (40, DEFAULT)


def test_below_an_exact_policy_the_next_one_outwards_counts(kernel, make_cgroup, spawn, look):
    pod, container, inside = make_cgroup(), make_cgroup("c"), make_cgroup("c/i")
    policies = {number(pod): Policy((), 40), number(container): Policy((), 41, exact=True)}
    kernel.set_table(policies, (), DEFAULT)

    pid = named(spawn(*STAYS, cgroup=inside))

    assert look(pid).hint == 40


def test_a_policy_of_which_no_rule_holds_has_its_own_default(kernel, make_cgroup, spawn, look):
    pod = make_cgroup()
    kernel.set_table({number(pod): Policy((KernelRule(40, comm="x"),), 41)}, (), DEFAULT)

    pid = named(spawn(*STAYS, cgroup=pod))

    assert look(pid).hint == 41


def test_rules_for_processes_count_where_no_cgroup_has_a_policy(kernel, make_cgroup, sleepers):
    pod = make_cgroup()
    processes = (KernelRule(60, comm="gc", process="jav"), KernelRule(61, process="java"))
    kernel.set_table({number(pod): Policy((), 40)}, processes, DEFAULT)

    free, covered = sleepers("java", "gc-1", "io"), sleepers("java", "gc-1", cgroup=pod)

    assert hints_of(kernel, free) == {"java": 61, "gc-1": 60, "io": 61}
    assert hints_of(kernel, covered) == {"java": 40, "gc-1": 40}


@pytest.mark.parametrize(("leader", "hints"), [(True, (70, DEFAULT)), (False, (DEFAULT, 70))])
def test_rules_tell_leaders_from_other_threads(kernel, sleepers, leader, hints):
    kernel.set_table({}, (KernelRule(70, process="lead", leader=leader),), DEFAULT)

    threads = threads_of(kernel, sleepers("lead", "other"))

    assert (threads["lead"].hint, threads["other"].hint) == hints
    assert (threads["lead"].is_leader, threads["other"].is_leader) == (True, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_rule_for_root_leaves_others_alone(kernel, spawn, look):
    kernel.set_table({}, (KernelRule(71, comm="sleep", root_only=True),), DEFAULT)

    ours, theirs = named(spawn(*STAYS)), named(spawn(*STAYS, user=65534))

    assert (look(ours).hint, look(theirs).hint) == (71, DEFAULT)


def test_a_name_that_is_no_text_is_a_name_too(kernel, thread, look):
    kernel.set_table({}, (KernelRule(73, comm="\udcff-"),), DEFAULT)

    Path(f"/proc/self/task/{thread}/comm").write_bytes(b"\xff-\xc3")

    assert (look(thread).hint, look(thread).comm) == (73, "\udcff-\udcc3")


def test_a_policy_that_is_gone_counts_no_more(kernel, make_cgroup, spawn, look):
    pod = make_cgroup()
    kernel.set_table({number(pod): Policy((), 40)}, (), DEFAULT)
    pid = named(spawn(*STAYS, cgroup=pod))

    kernel.set_table({}, (), DEFAULT)
    kernel.walk()

    assert look(pid).hint == DEFAULT


def test_a_rule_may_leave_a_thread_as_it_is(kernel, thread, rename, look):
    kernel.set_table({}, (KernelRule(NO_HINT, comm="as-it"), KernelRule(50, comm="v")), DEFAULT)
    rename(thread, "vip")

    rename(thread, "as-it-is")
    kernel.walk()

    assert (look(thread).hint, look(thread).expected) == (50, NO_HINT)


def test_a_table_for_more_cgroups_than_there_is_room_for_is_refused(kernel, thread, look):
    most = {cgroup: Policy((), 40) for cgroup in range(10**9, 10**9 + MOST_POLICIES)}
    kernel.set_table(most, (), DEFAULT)

    with pytest.raises(BpfError, match="Argument list too long"):
        kernel.set_table({**most, 5: Policy((), 40)}, (), DEFAULT)

    kernel.set_table({}, (), 3)
    kernel.walk()
    assert look(thread).hint == 3


def test_after_a_table_that_was_too_large_there_is_room_for_another(kernel, thread, look):
    kernel.set_table({}, (), 76)
    many = range(10**9, 10**9 + MOST_POLICIES + 1)
    others = range(2 * 10**9, 2 * 10**9 + MOST_POLICIES)

    with pytest.raises(BpfError):
        kernel.set_table({cgroup: Policy((), 40) for cgroup in many}, (), DEFAULT)
    kernel.walk()
    put_right = kernel.walk().corrected
    kernel.set_table({cgroup: Policy((), 41) for cgroup in others}, (), 77)

    assert put_right == 0
    assert look(thread).expected == 77


def test_where_not_all_cgroups_find_room_the_default_counts(kernel, thread, look):
    many = range(10**9, 10**9 + MOST_POLICIES + 1)

    with pytest.raises(BpfError):
        kernel.set_table({cgroup: Policy((), 40) for cgroup in many}, (), DEFAULT)

    assert look(thread).expected == DEFAULT


def test_only_as_many_rules_as_there_is_room_for_are_taken(kernel):
    with pytest.raises(ValueError, match="17 rules are more than 16"):
        kernel.set_table({}, (KernelRule(1),) * 17, DEFAULT)


@pytest.mark.parametrize("hint", [-1, NO_HINT + 1])
def test_a_hint_is_a_number_of_sixteen_bits(hint):
    with pytest.raises(ValueError, match="a hint is 0 to 65535"):
        KernelRule(hint)
    with pytest.raises(ValueError, match="a hint is 0 to 65535"):
        Policy((), hint)
