"""What is said to be impossible is, and what is said to be hidden never gets a thread."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from temper_core.patterns import finds
from temper_core.profiles.match_reach import covers, hidden, impossibilities, unreachable
from temper_core.profiles.matching import matches
from temper_core.records.thread_groups import Behaviour, ThreadGroup, ThreadMatch
from temper_core.records.threads import ThreadIdentity


@pytest.mark.parametrize(
    "pattern",
    [
        "abcdefghijklmnop",
        "^connection-worker-[0-9]+$",
        "a{16}",
        "(ab){8}",
        "é" * 8,
        "(?:abcdefghijklmnop|abcdefghijklmnopq)",
    ],
)
def test_a_pattern_that_takes_more_bytes_than_a_name_has_is_unreachable(pattern):
    assert "and a name has at most 15" in unreachable(pattern, 15, "a name")


@pytest.mark.parametrize("pattern", ["a^b", "$a", "(a|b)$c", "x+^", "(?:a$)b", r"a\Ab", "(a^|b^)"])
def test_a_pattern_that_asks_for_text_beyond_the_ends_is_unreachable(pattern):
    assert "before a name begins or after it ends" in unreachable(pattern, 15, "a name")


@pytest.mark.parametrize(
    "pattern",
    ["^abcdefghijklmno$", "a|abcdefghijklmnop", "(a$)*b", "(^a|b)c", "[[:alpha:]]{15}", "(?m)a^b",
     "^$", "a*$", "x?^y", r"\bfoo\b", "(?i)^gc", "", "a|$b"],
)  # fmt: skip
def test_a_pattern_that_may_be_found_is_let_be(pattern):
    assert unreachable(pattern, 15, "a name") == ""


pieces = st.sampled_from(["a", "b", "^", "$", "(a|b)", "(ab$|c)", ".*", "[ab]{3}", "(^b)?", "x{9}"])


@given(st.lists(pieces, max_size=5).map("".join), st.text("abcx", max_size=15))
def test_what_is_found_in_a_name_is_never_called_unreachable(pattern, name):
    try:
        found = finds(pattern, name)
    except ValueError:
        assume(False)
    assert not found or unreachable(pattern, 15, "a name") == ""


@pytest.mark.parametrize(
    ("match", "path"),
    [
        (ThreadMatch(comm_prefix="a\0b"), ".comm_prefix"),
        (ThreadMatch(exe="a\0b"), ".exe"),
        (ThreadMatch(parent="a\0b"), ".parent"),
        (ThreadMatch(comm_pattern="a{16}"), ".comm_pattern"),
        (ThreadMatch(title_pattern="$x"), ".title_pattern"),
        (ThreadMatch(leader=True, comm_prefix="gc", process="java"), ".leader"),
        (ThreadMatch(behaviour=Behaviour(cpu_share=(1.5, 2.0))), ".behaviour.cpu_share"),
        (
            ThreadMatch(behaviour=Behaviour(run_us=(2000, 9e9), wakeups_per_s=(1000, 9e9))),
            ".behaviour.run_us",
        ),
    ],
)
def test_a_match_that_holds_for_no_thread_is_told_by_its_key(match, path):
    [(where, why)] = impossibilities(match)

    assert where == path
    assert why.startswith("can never match: ")


@pytest.mark.parametrize(
    "match",
    [
        ThreadMatch(leader=True, comm_prefix="java-x", process="java"),
        ThreadMatch(leader=False, comm_prefix="gc", process="java"),
        ThreadMatch(behaviour=Behaviour(cpu_share=(0.9, 2.0))),
        ThreadMatch(title_pattern="a{1000}"),
    ],
)
def test_a_match_that_may_hold_is_let_be(match):
    assert list(impossibilities(match)) == []


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("^C2 CompilerThread0$", ["C2 CompilerThre", "C2 Comp..hread0"]),
        ("^gc$|^(G1 Concurrent Refine)", ["G1 Concurrent R", "G1 Conc..Refine"]),
        ("worker-threads-[ab]", ["worker-..eads-a", "worker-..eads-b"]),
        ("é" * 8, ["é" * 7]),
    ],
)
def test_a_name_that_is_too_long_is_shown_as_the_kernel_and_the_jdk_cut_it(pattern, names):
    told = " ".join(why for _, why in impossibilities(ThreadMatch(comm_pattern=pattern)))

    assert "and a name has at most 15" in told
    assert all(repr(name) in told for name in names)


@pytest.mark.parametrize(
    "pattern",
    ["^abcdefghijklmno$", "a|b", "abcdefghijklmn[^o]", "(a|b)*" * 40, "(" * 200 + "a" + ")" * 200,
     "abcdefghijklmnop?", "[a-z]{15}", "(?:abc|def)ghijklmnop"],
)  # fmt: skip
def test_no_pattern_is_refused_whose_every_alternative_may_be_a_name(pattern):
    assert list(impossibilities(ThreadMatch(comm_pattern=pattern))) == []


names = st.none() | st.sampled_from(["g", "gc", "io"])
some_matches = st.builds(
    ThreadMatch,
    comm_prefix=names,
    process=names,
    leader=st.none() | st.booleans(),
    comm_pattern=st.none() | st.sampled_from(["c", "^g"]),
    behaviour=st.none() | st.builds(Behaviour, st.sampled_from([(0.0, 1.0), (0.2, 0.5)])),
    exe=names,
    parent=names,
    is_child=st.none() | st.booleans(),
    older_than_s=st.none() | st.sampled_from([1.0, 60.0]),
).filter(lambda match: not match.is_empty)
threads = st.builds(
    ThreadIdentity,
    cgroup=st.just(""),
    comm=st.sampled_from(["g", "gc", "gc1", "io", "x"]),
    process=st.sampled_from(["g", "gc", "io9", "x"]),
    is_leader=st.booleans(),
    exe=st.sampled_from(["", "gc", "io9"]),
    parent=st.sampled_from(["", "gc", "io9"]),
    is_child=st.none() | st.booleans(),
    age_s=st.none() | st.sampled_from([0.0, 1.0, 30.0, 90.0]),
)


@given(some_matches, some_matches, threads)
def test_what_is_covered_never_takes_a_thread_that_its_cover_leaves(earlier, later, thread):
    if covers(earlier, later) and matches(later, thread):
        assert matches(earlier, thread)


def group(name, *given):
    return ThreadGroup(name, tuple(ThreadMatch(**each) for each in given))


def test_a_group_is_hidden_where_every_match_of_it_is_taken_before():
    groups = (
        group("a", {"comm_prefix": "gc"}),
        group("b", {"leader": False, "process": "java"}),
        group("c", {"comm_prefix": "gc-1"}, {"process": "javac", "leader": False}),
        group("d", {"comm_prefix": "gc-1"}, {"process": "ruby"}),
    )

    assert list(hidden(groups)) == [(2, "a and b")]


def test_a_last_group_without_a_match_is_never_hidden():
    assert list(hidden((group("a", {"leader": True}, {"leader": False}), group("rest")))) == []
