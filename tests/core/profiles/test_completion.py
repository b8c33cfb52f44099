"""The profiles of a node, completed: who extends whom, and what outlives a mistake."""

import datetime as dt
import itertools

import pytest

from temper_core import parse_profile
from temper_core.engine.capabilities import capabilities_of
from temper_core.profiles import completion as completion_module
from temper_core.profiles import engine_limits
from temper_core.profiles.completion import Completion, installed_engine, newest_engine
from temper_core.records.profiles import LoadedProfile, ProfileFailure, ShapeRange

REST = '[[thread_groups]]\nname = "rest"\n'


def entry(text, source="a.toml", *, is_file=True):
    return LoadedProfile(parse_profile(text, source), source, is_file)


def plain(name, extra="", **more):
    return entry(f'id = "{name}"\n{extra}\n{REST}', **more)


def child(name, parent, extra="", **more):
    return entry(f'id = "{name}"\nextends = "{parent}"\n{extra}', **more)


def group(name, prefix="x"):
    return f'[[thread_groups]]\nname = "{name}"\nmatch = [{{ comm_prefix = "{prefix}" }}]\n'


@pytest.fixture
def completion():
    return Completion()


def ids(catalogue):
    return [(each.profile.id, each.source) for each in catalogue.profiles]


def groups(loaded):
    return [each.name for each in loaded.profile.thread_groups]


def test_the_parent_may_be_a_file_or_what_a_plugin_ships(completion):
    made = completion.catalogue(
        [
            child("one", "two", group("a", "x"), source="1.toml"),
            child("two", "shipped", group("b", "y"), source="2.toml"),
            plain("shipped", source="acme", is_file=False),
        ]
    )

    one = made.profiles[0]
    assert made.failures == ()
    assert groups(one) == ["a", "b", "rest"]
    assert one.lineage == ("two (2.toml)", "shipped (acme)")
    assert (one.source, one.is_file) == ("1.toml", True)


def test_a_file_of_the_same_id_extends_what_is_shipped_and_takes_its_place(completion):
    made = completion.catalogue(
        [
            child("db", "db", group("a"), source="1.toml"),
            plain("db", source="acme", is_file=False),
        ]
    )

    assert ids(made) == [("db", "1.toml"), ("db", "acme")]
    assert groups(made.profiles[0]) == ["a", "rest"]


def test_a_file_is_the_parent_before_what_is_shipped(completion):
    made = completion.catalogue(
        [
            child("mine", "db", source="1.toml"),
            plain("db", group("file"), source="2.toml"),
            plain("db", group("shipped"), source="acme", is_file=False),
        ]
    )

    assert groups(made.profiles[0]) == ["file", "rest"]


def test_a_parent_for_several_machines_gives_a_child_for_each(completion):
    made = completion.catalogue(
        [
            child("mine", "db", source="1.toml"),
            plain("db", "[machine_shape]\ncores = 4", source="2.toml"),
            plain("db", "[machine_shape]\ncores = [8, 64]", source="3.toml"),
        ]
    )

    shapes = {each.profile.machine_shape for each in made.profiles if each.profile.id == "mine"}
    assert shapes == {ShapeRange(cores=4), ShapeRange(cores=(8, 64))}


def test_a_shape_of_the_childs_own_leaves_one_by_the_most_specific_parent(completion):
    made = completion.catalogue(
        [
            child("mine", "db", "[machine_shape]\ncores = 16", source="1.toml"),
            plain("db", f"[machine_shape]\ncores = [8, 64]\n{group('wide')}", source="2.toml"),
            plain("db", f"[machine_shape]\ncores = 4\n{group('exact')}", source="3.toml"),
        ]
    )

    [mine] = [each for each in made.profiles if each.profile.id == "mine"]
    assert groups(mine) == ["exact", "rest"]


@pytest.mark.parametrize(
    ("entries", "reasons"),
    [
        ([child("a", "b")], ["extends 'b', which is not there; there are none"]),
        ([child("a", "a")], ["extends 'a', which is not there; there are none"]),
        (
            [child("a", "b", source="1"), child("b", "a", source="2")],
            ["extends 'b': extends 'a': extends itself: a extends b extends a"] * 2,
        ),
        (
            [child("a", "b", source="1"), ProfileFailure("2", "b", "is bad")],
            ["extends 'b', which could not be loaded (2: is bad)", "is bad"],
        ),
        (
            [child("a", "a", is_file=False)],
            ["extends 'a': extends itself: a extends a"],
        ),
    ],
)
def test_what_cannot_be_completed_is_a_failure_with_the_reason(completion, entries, reasons):
    made = completion.catalogue(entries)

    assert made.profiles == ()
    assert [failure.reason for failure in made.failures[:1]] == reasons[:1]
    assert len(made.failures) == len(reasons)


def test_too_long_a_line_of_parents_is_a_failure_of_those_that_are_too_deep(completion):
    line = [child(f"p{n}", f"p{n + 1}", source=f"{n}.toml") for n in range(12)]

    made = completion.catalogue([*line, plain("p12", source="12.toml")])

    failed = [failure.profile for failure in made.failures]
    assert sorted(failed) == ["p0", "p1", "p2", "p3"]
    assert "more than 8 profiles extend one another" in made.failures[0].reason


def test_a_child_follows_a_parent_that_changes(completion):
    mine = child("mine", "db", source="1.toml")

    before = completion.catalogue([mine, plain("db", group("old"), source="2.toml")])
    after = completion.catalogue([mine, plain("db", group("new"), source="2.toml")])

    assert groups(before.profiles[0]) == ["old", "rest"]
    assert groups(after.profiles[0]) == ["new", "rest"]


def test_the_last_good_version_of_a_child_outlives_its_parent(completion):
    mine = child("mine", "db", group("a"), source="1.toml")
    completion.catalogue([mine, plain("db", source="2.toml")])

    orphan = completion.catalogue([mine])
    gone = completion.catalogue([])
    anew = completion.catalogue([mine])

    [failure] = orphan.failures
    assert groups(orphan.profiles[0]) == ["a", "rest"]
    assert failure.profile == "mine"
    assert failure.reason.endswith("which is not there; there are none; "
                                   "its last good version stays in force")  # fmt: skip
    assert (gone.profiles, gone.failures) == ((), ())
    assert anew.profiles == ()


def test_a_parent_that_no_longer_goes_together_with_its_child_leaves_that_as_it_was(completion):
    mine = child(
        "mine", "db", '[[thread_groups]]\nname = "a"\noverride = "remove"', source="1.toml"
    )
    completion.catalogue([mine, plain("db", group("a"), source="2.toml")])

    made = completion.catalogue([mine, plain("db", group("b"), source="2.toml")])

    assert groups(made.profiles[0]) == ["rest"]
    assert "'db' has no such group to remove; it has b, rest" in made.failures[0].reason


def test_two_files_that_come_to_be_for_one_machine_are_told_apart_by_name(completion):
    made = completion.catalogue(
        [
            child("x", "db", source="1.toml"),
            child("x", "db", "[machine_shape]\ncores = 4", source="2.toml"),
            plain("db", "[machine_shape]\ncores = 4", source="3.toml"),
        ]
    )

    [failure] = made.failures
    assert ids(made) == [("x", "1.toml"), ("db", "3.toml")]
    assert (failure.source, failure.profile) == ("2.toml", "x")
    assert "of 1.toml, which comes first" in failure.reason


@pytest.mark.parametrize(
    ("version", "text", "problem"),
    [
        (
            "1.0.9",
            '[[thread_groups]]\nname = "a"\nmatch = [{ leader = true }]\n',
            "needs IsGroupLeader, which scx_layered 1.0.9 lacks (from 1.0.10 on)",
        ),
        (
            "1.0.11",
            group("a", "ib_log") + group("b", "ib_") + 'treatment = "exclusive"\n',
            "needs CommPrefixExclude, which scx_layered 1.0.11 lacks (from 1.0.12 on)",
        ),
    ],
)
def test_what_the_installed_engine_cannot_match_is_a_failure(version, text, problem):
    old = Completion(lambda: capabilities_of(version))

    refused = old.catalogue([plain("x", text)])
    taken = Completion().catalogue([plain("x", text)])

    assert refused.profiles == ()
    assert problem in refused.failures[0].reason
    assert (len(taken.profiles), taken.failures) == (1, ())


def test_more_groups_than_the_engine_has_layers_for_are_a_failure(completion):
    many = "".join(group(f"g{n}", f"w{n}.") + 'treatment = "exclusive"\n' for n in range(14))

    [failure] = completion.catalogue([plain("x", many)]).failures

    assert "14 groups ask for a layer of their own" in failure.reason
    assert "has room for 13" in failure.reason


def test_an_engine_that_is_replaced_by_an_older_one_leaves_the_last_good_version():
    versions = iter(["1.1.4", "1.0.9"])
    completion = Completion(lambda: capabilities_of(next(versions)))
    loaded = plain("x", '[[thread_groups]]\nname = "a"\nmatch = [{ leader = true }]\n')

    completion.catalogue([loaded])
    made = completion.catalogue([loaded])

    assert ids(made) == [("x", "a.toml")]
    assert made.failures[0].reason.endswith("its last good version stays in force")


def test_without_an_engine_the_newest_that_is_known_is_taken():
    assert installed_engine("there-is-no-such-engine")() == newest_engine()


@pytest.mark.parametrize(
    ("expires", "day", "expired"),
    [
        ("2026-03-01", dt.date(2026, 2, 28), ""),
        ("2026-03-01", dt.date(2026, 3, 1), "2026-03-01"),
        ("next spring", dt.date(2030, 1, 1), ""),
        ("", dt.date(2030, 1, 1), ""),
    ],
)
def test_evidence_that_expired_is_advice_and_the_profile_stays(expires, day, expired):
    completion = Completion(clock=lambda: day)

    made = completion.catalogue([plain("x", f'[evidence]\nexpires = "{expires}"\n')])

    [loaded] = made.profiles
    assert loaded.expired == expired
    assert ("measure again" in loaded.advice) is bool(expired)
    assert made.failures == ()


def test_where_nothing_is_new_the_catalogue_is_the_very_same(completion):
    entries = (child("one", "two", source="1.toml"), plain("two", source="2.toml"))
    before = completion.catalogue(entries)

    assert completion.catalogue(entries) is before
    assert completion.catalogue(entries[1:]) is not before


def test_groups_are_separated_only_for_an_engine_that_may_lack_the_matchers(monkeypatch):
    separated = []
    monkeypatch.setattr(engine_limits, "tier_conditions", separated.append)

    catalogue = Completion().catalogue([plain("db", group("a") + 'treatment = "yield"\n')])

    assert catalogue.failures == ()
    assert separated == []


def test_the_variants_of_a_child_are_checked_one_at_a_time(monkeypatch):
    checked = []
    monkeypatch.setattr(
        completion_module, "engine_misfits", lambda profile, _: checked.append(profile) or ()
    )
    parents = [plain("db", f"machine_shape.cores = {n}", source=f"{n}.toml") for n in (1, 2, 3)]

    steps = Completion().steps([*parents, child("mine", "db", source="z.toml")])
    counts = [len(checked) for _ in steps]

    assert max(b - a for a, b in itertools.pairwise(counts)) == 1
