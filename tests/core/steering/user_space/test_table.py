"""What of a plan the kernel side is told, and what is left to user space."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.plan import membership
from temper_core.records.steering import FIXED_HINTS, OPEN, Scope, ScopeKind, SteeredPlace
from temper_core.records.threads import ThreadIdentity
from temper_core.steering import table as steering_table
from temper_core.steering.kernel import MOST_RULES, KernelRule, Policy
from temper_core.steering.scopes import place_cgroups
from temper_core.steering.table import build_table
from tests.core.steering.user_space.plans import at, named, rule, steered

TREE = {"": 1, "a": 2, "a/b": 3, "c": 4}
ID = "4f" * 32
PODS = ("kubepods.slice", "kubepods.slice/k-pod1.slice", "kubepods.slice/k-pod2.slice", f"c/{ID}")
INNER = (f"cri-{ID}.scope", "x-pod1.slice")
LARGE_TREE = {
    path: number
    for number, path in enumerate(
        (
            *TREE,
            *PODS,
            *(f"{pod}/{a}{b}" for pod in PODS for a in INNER for b in ("", "/x-pod2.slice")),
        ),
        start=1,
    )
}
HIGH, LOW, SYSTEM = FIXED_HINTS["high"], FIXED_HINTS["low"], FIXED_HINTS["system"]


def table_of(*places, **groups):
    plan = steered(*places, **groups)
    return build_table(plan, place_cgroups(plan, TREE))


def test_a_place_is_a_policy_with_its_rules_in_their_order():
    table = table_of(
        at("a", rule("fast", comm_prefix="ib_"), rule("high", leader=True), rule("low"), pod="p"),
        fast=16,
    )

    rules = (KernelRule(16, comm="ib_"), KernelRule(HIGH, leader=True))
    assert table.policies == {2: Policy(rules, LOW)}
    assert (table.default_hint, table.judged_here) == (FIXED_HINTS[OPEN], frozenset())


def test_whom_no_rule_takes_goes_into_the_open_layer():
    table = table_of(at("a", rule("system", root_only=True, process="kubelet")))

    rules = (KernelRule(SYSTEM, process="kubelet", root_only=True),)
    assert table.policies == {2: Policy(rules, FIXED_HINTS[OPEN])}


def test_what_stands_behind_a_rule_for_all_is_never_written():
    table = table_of(at("a", rule("high"), rule("low", comm_prefix="x"), pod="p"))

    assert table.policies == {2: Policy((), HIGH)}


@pytest.mark.parametrize(
    "match", [{"title_pattern": "wal"}, {"comm_pattern": "^w[0-9]"}, {"behaviour": None}]
)
def test_rules_that_only_user_space_can_judge_are_left_out_and_their_cgroups_noted(match):
    rich = rule("fast", **match) if match != {"behaviour": None} else rule("fast", comm_pattern="b")

    table = table_of(at("a", rich, rule("low", comm_prefix="x"), rule("high"), pod="p"), fast=16)

    assert table.policies == {2: Policy((KernelRule(LOW, comm="x"),), HIGH)}
    assert table.judged_here == {2, 3}


def test_a_rule_behind_one_for_all_makes_no_work_for_user_space():
    table = table_of(at("a", rule("high"), rule("low", title_pattern="x"), pod="p"))

    assert table.judged_here == frozenset()


def test_more_rules_than_the_kernel_side_takes_are_judged_in_user_space():
    rules = [rule("high", comm_prefix=f"t{n}") for n in range(MOST_RULES + 1)]

    table = table_of(at("a", *rules, pod="p"))

    assert len(table.policies[2].rules) == MOST_RULES
    assert table.judged_here == {2, 3}


def test_of_process_scopes_the_longest_name_comes_first():
    table = table_of(
        named("my", rule("low"), pod="m"),
        named("mysqld", rule("high", comm_prefix="ib_"), rule("normal"), pod="d"),
    )

    assert table.processes == (
        KernelRule(HIGH, comm="ib_", process="mysqld"),
        KernelRule(FIXED_HINTS["normal"], process="mysqld"),
        KernelRule(LOW, process="my"),
    )


def test_a_rule_for_another_process_within_a_process_scope_never_holds():
    table = table_of(named("mysqld", rule("high", process="nginx"), rule("low"), pod="d"))

    assert table.processes == (KernelRule(LOW, process="mysqld"),)


def test_a_process_scope_counts_in_places_that_are_no_pods():
    table = table_of(
        at("a", rule("system", process="kubelet", root_only=True), rule("open")),
        at("c", rule("high"), pod="p"),
        named("mysqld", rule("low"), pod="d"),
    )

    assert table.policies[2].rules[0] == KernelRule(LOW, process="mysqld")
    assert table.policies[4] == Policy((), HIGH)


def test_a_process_scope_of_which_user_space_judges_makes_it_look_outside_of_pods():
    table = table_of(
        at("a", rule("high"), pod="p"), named("postgres", rule("low", title_pattern="w"), pod="d")
    )

    assert table.judged_here == {1, 4}


def test_the_deepest_cgroups_are_left_to_user_space_if_the_table_is_full(monkeypatch):
    monkeypatch.setattr(steering_table, "MOST_POLICIES", 2)

    built = table_of(
        at("a/b", rule("low"), pod="q"), at("a", rule("high"), pod="p"), at("c", rule("high"))
    )

    assert built.policies == {2: Policy((), HIGH), 4: Policy((), HIGH)}
    assert (built.judged_here, built.omitted) == ({3}, 1)


def test_the_cgroups_below_an_omitted_one_are_left_to_user_space_too(monkeypatch):
    monkeypatch.setattr(steering_table, "MOST_POLICIES", 0)

    built = table_of(at("a", rule("high"), pod="p"))

    assert (built.policies, built.judged_here, built.omitted) == ({}, {2, 3}, 1)


NAMES = st.sampled_from(["", "a", "ab", "b"])
RULES = st.builds(
    lambda layer, comm, process, leader, root: rule(
        layer,
        root_only=root,
        **{
            key: value
            for key, value in (("comm_prefix", comm), ("process", process), ("leader", leader))
            if value not in ("", None)
        },
    ),
    st.sampled_from(["high", "low", "normal"]),
    NAMES,
    NAMES,
    st.sampled_from([None, True, False]),
    st.booleans(),
)
PLACES = st.lists(
    st.one_of(
        st.builds(
            lambda path, rules, pod, exact: at(path, *rules, pod=pod, exact=exact),
            st.sampled_from(list(LARGE_TREE)),
            st.lists(RULES, max_size=3),
            st.sampled_from(["", "p"]),
            st.booleans(),
        ),
        st.builds(
            lambda scope, rules, pod: SteeredPlace(Scope(*scope), tuple(rules), pod),
            st.sampled_from(
                [
                    (ScopeKind.POD, "pod1.slice"),
                    (ScopeKind.POD, "pod2.slice"),
                    (ScopeKind.CONTAINER, ID),
                ]
            ),
            st.lists(RULES, max_size=3),
            st.sampled_from(["p", "q"]),
        ),
        st.builds(
            lambda rules: SteeredPlace(
                Scope(ScopeKind.PATH, "kubepods.slice"), tuple(rules), is_of_pods=True
            ),
            st.lists(RULES, max_size=3),
        ),
        st.builds(
            lambda process, rules: named(process, *rules, pod="n"),
            st.sampled_from(["a", "ab"]),
            st.lists(RULES, max_size=3),
        ),
    ),
    max_size=4,
)
THREADS = st.builds(
    lambda path, comm, process, uid, leader: ThreadIdentity(
        f"{path}/", comm, process, uid, is_leader=leader
    ),
    st.sampled_from(list(LARGE_TREE)),
    NAMES,
    NAMES,
    st.sampled_from([0, 1000]),
    st.booleans(),
)


def kernel_says(table, thread):
    """Judge as the kernel side does: the innermost cgroup's policy, else the process rules."""
    path, is_own = thread.cgroup.strip("/"), True
    while True:
        policy = table.policies.get(LARGE_TREE[path])
        if policy is not None and (is_own or not policy.exact):
            break
        if not path:
            policy = Policy(table.processes, table.default_hint)
            break
        path, is_own = path.rpartition("/")[0], False
    for each in policy.rules:
        if not (thread.comm.startswith(each.comm) and thread.process.startswith(each.process)):
            continue
        if each.leader in (None, thread.is_leader) and (not each.root_only or thread.uid == 0):
            return each.hint
    return policy.otherwise


@given(PLACES, THREADS)
def test_the_kernel_side_puts_a_thread_where_the_plan_wants_it(places, thread):
    plan = steered(*places)
    table = build_table(plan, place_cgroups(plan, LARGE_TREE))

    assert kernel_says(table, thread) == plan.hints[membership.place_index(plan).layer_of(thread)]
