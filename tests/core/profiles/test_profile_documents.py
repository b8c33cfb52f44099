import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import DocumentError, parse_profile

GOOD = """
schema_version = 1
id = "search"

[machine_shape]
cores = [4, 16]

[[thread_groups]]
name = "queries"
match = [{ comm_prefix = "query-" }]
treatment = "exclusive"
cpu_fraction = 0.85

[[thread_groups]]
name = "rest"
"""


def problems_of(text):
    with pytest.raises(DocumentError) as caught:
        parse_profile(text, "search.toml")
    return caught.value.problems


def test_a_profile_is_read_with_its_groups_in_order():
    profile = parse_profile(GOOD, "search.toml")

    assert (profile.id, profile.machine_shape.cores) == ("search", (4, 16))
    assert [group.name for group in profile.thread_groups] == ["queries", "rest"]


def test_every_misfit_is_named_at_once():
    text = GOOD.replace('"exclusive"', '"turbo"').replace("0.85", '"most"') + "colour = 3\n"

    problems = "\n".join(problems_of(text))

    assert "thread_groups[0].treatment: must be one of 'exclusive'" in problems
    assert "thread_groups[0].cpu_fraction: must be a number, not 'most'" in problems
    assert "thread_groups[1]: unknown key 'colour'" in problems


@pytest.mark.parametrize(
    ("written", "wrong", "problem"),
    [
        ("[4, 16]", "[16, 4]", "machine_shape.cores: must be [min, max] with 1 <= min <= max"),
        ("[4, 16]", "0", "machine_shape.cores: must be [min, max] with 1 <= min <= max, not 0"),
        ('{ comm_prefix = "query-" }', "{}", "thread_groups[0]: a match of 'queries' names no key"),
        (
            "query-",
            "äääääääääää",
            "thread_groups[0].match[0].comm_prefix: must be at most 15 bytes",
        ),
        (
            "query-",
            "C2 CompilerThread0",
            (
                "thread_groups[0].match[0].comm_prefix: must be at most 15 bytes, not 18: "
                "the kernel keeps 'C2 CompilerThre', the JDK writes 'C2 Comp..hread0'"
            ),
        ),
        (
            'comm_prefix = "query-"',
            'exe = "/usr/bin/java"',
            (
                "thread_groups[0].match[0].exe: must be the name of a file without its path, "
                "such as 'java'"
            ),
        ),
        (
            'comm_prefix = "query-"',
            'parent = ""',
            "thread_groups[0].match[0].parent: must not be empty; leave the key out",
        ),
        (
            'comm_prefix = "query-"',
            "older_than_s = 1e6",
            "thread_groups[0].match[0].older_than_s: must be <= 86400",
        ),
        (
            'comm_prefix = "query-"',
            'comm_pattern = "("',
            "thread_groups[0].match[0].comm_pattern: must be a regular expression",
        ),
        (
            'comm_prefix = "query-"',
            "behaviour = { run_us = [9, 1] }",
            "thread_groups[0].match[0].behaviour.run_us: must be [min, max] with 0 <= min <= max",
        ),
    ],
)
def test_what_no_single_value_can_tell_is_checked_too(written, wrong, problem):
    [found] = problems_of(GOOD.replace(written, wrong))

    assert found.startswith(problem)


def misfits(text):
    try:
        parse_profile(text, "x.toml")
    except DocumentError as error:
        return error.problems
    return ()


@given(st.text(max_size=200))
def test_no_text_whatever_is_anything_but_a_document_with_misfits(text):
    assert misfits(text)


@given(st.integers(0, len(GOOD) - 1), st.characters(codec="utf-8"))
def test_a_profile_with_one_character_changed_is_read_or_refused(place, character):
    changed = GOOD[:place] + character + GOOD[place + 1 :]

    assert all(isinstance(problem, str) for problem in misfits(changed))
