"""What a profile takes from the one that it extends."""

import pytest

from temper_core import DocumentError, parse_profile
from temper_core.profiles.documents import complete
from temper_core.records.profiles import DerivedProfile, Evidence
from temper_core.records.thread_groups import Treatment

PARENT = """
id = "db"
description = "a database"
[fingerprint]
images = ["db:*"]
[machine_shape]
cores = [4, 16]
threads_per_core = 2
[traits]
cpu_bound = "compute"
[[thread_groups]]
name = "queries"
match = [{ comm_prefix = "query" }]
treatment = "exclusive"
cpu_fraction = 0.85
[[thread_groups]]
name = "merges"
match = [{ comm_prefix = "merge" }]
treatment = "yield"
[[thread_groups]]
name = "rest"
[evidence]
before = "9 ms"
after = "3 ms"
"""


@pytest.fixture
def extended():
    parent = parse_profile(PARENT, "db.toml")

    def make(text, name="mine"):
        child = parse_profile(f'id = "{name}"\nextends = "db"\n{text}', "mine.toml")
        assert isinstance(child, DerivedProfile)
        return complete(child, parent, "mine.toml")

    return make


def names(profile):
    return [group.name for group in profile.thread_groups]


def test_all_that_is_not_said_is_the_parents_but_what_belongs_to_it_alone(extended):
    made = extended("")

    assert (made.id, made.description) == ("mine", "a database")
    assert names(made) == ["queries", "merges", "rest"]
    assert (made.machine_shape.cores, made.traits.cpu_bound) == ((4, 16), "compute")
    assert made.fingerprint.images == ()
    assert made.evidence == Evidence()


def test_a_profile_of_the_same_id_is_recognised_as_its_parent_is(extended):
    made = extended('[fingerprint]\nprocesses = ["dbd"]', name="db")

    assert (made.fingerprint.images, made.fingerprint.processes) == (("db:*",), ("dbd",))


def test_the_keys_of_the_child_win_one_by_one(extended):
    text = 'description = "ours"\n[machine_shape]\ncores = 8\n[traits]\ngpu_bound = "none"'

    made = extended(text)

    assert made.description == "ours"
    assert (made.machine_shape.cores, made.machine_shape.threads_per_core) == (8, 2)
    assert (made.traits.cpu_bound, made.traits.gpu_bound) == ("compute", "none")


def test_a_group_of_the_same_name_takes_over_the_keys_that_are_given(extended):
    made = extended('[[thread_groups]]\nname = "queries"\ncpu_fraction = 0.5')

    [queries, *_] = made.thread_groups
    assert queries.cpu_fraction == 0.5
    assert queries.treatment is Treatment.EXCLUSIVE
    assert queries.match[0].comm_prefix == "query"


def test_even_a_default_that_is_given_wins(extended):
    made = extended('[[thread_groups]]\nname = "merges"\ntreatment = "normal"')

    assert made.thread_groups[1].treatment is Treatment.NORMAL


def test_another_treatment_lets_go_of_the_fraction_that_sized_the_former(extended):
    made = extended('[[thread_groups]]\nname = "queries"\ntreatment = "latency"')

    assert made.thread_groups[0].cpu_fraction is None


def test_a_group_is_replaced_or_removed_where_it_says_so(extended):
    made = extended("""
[[thread_groups]]
name = "queries"
override = "replace"
match = [{ comm_prefix = "q" }]
[[thread_groups]]
name = "merges"
override = "remove"
""")

    assert names(made) == ["queries", "rest"]
    assert (made.thread_groups[0].treatment, made.thread_groups[0].cpu_fraction) == (
        Treatment.NORMAL,
        None,
    )


def test_new_groups_come_first_or_behind_the_inherited_one_named_before_them(extended):
    made = extended("""
[[thread_groups]]
name = "first"
match = [{ comm_prefix = "a" }]
[[thread_groups]]
name = "merges"
[[thread_groups]]
name = "behind"
match = [{ comm_prefix = "b" }]
[[thread_groups]]
name = "further"
match = [{ comm_prefix = "c" }]
""")

    assert names(made) == ["first", "queries", "merges", "behind", "further", "rest"]


def test_a_new_rest_comes_last_once_the_inherited_one_is_gone(extended):
    made = extended("""
[[thread_groups]]
name = "others"
treatment = "yield"
[[thread_groups]]
name = "rest"
override = "remove"
""")

    assert names(made) == ["queries", "merges", "others"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '[[thread_groups]]\nname = "query"\noverride = "remove"',
            "'db' has no such group to remove; it has queries, merges, rest",
        ),
        (
            '[[thread_groups]]\nname = "others"',
            "group 'rest' has no match, so it takes every thread and must be last",
        ),
        (
            '[[thread_groups]]\nname = "all"\nmatch = [{ comm_prefix = "q" }]',
            "thread group 'queries': is hidden: every thread that it matches is taken by all",
        ),
        ("[machine_shape]\ncores = [9, 1]", "machine_shape.cores: must be [min, max]"),
    ],
)
def test_what_does_not_go_together_is_told_with_the_name_of_the_parent(extended, text, problem):
    with pytest.raises(DocumentError) as caught:
        extended(text)

    assert any(problem in each for each in caught.value.problems)


def test_override_is_only_for_those_that_extend():
    text = PARENT.replace('name = "merges"', 'name = "merges"\noverride = "merge"')

    with pytest.raises(DocumentError, match=r"thread_groups\[1\].override: is for profiles"):
        parse_profile(text, "db.toml")


def test_a_child_is_checked_by_itself_as_far_as_it_goes():
    text = """
id = "mine"
extends = "No"
[[thread_groups]]
name = "a"
match = [{ comm_pattern = "a^b" }, {}]
treatment = "turbo"
[[thread_groups]]
name = "a"
"""

    with pytest.raises(DocumentError) as caught:
        parse_profile(text, "mine.toml")

    told = "\n".join(caught.value.problems)
    assert "extends: must match regex" in told
    assert "thread_groups[0].treatment: must be one of" in told
    assert "thread_groups[0].match[0].comm_pattern: can never match" in told
    assert "thread_groups[0]: a match of 'a' names no key" in told
    assert "two thread groups are named 'a'" in told
