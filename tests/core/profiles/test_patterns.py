"""Patterns of profiles, on texts that a pod's threads choose."""

import re
import subprocess
import sys

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from temper_core import DocumentError, parse_profile
from temper_core.patterns import (
    LONGEST_PATTERN,
    MOST_PATTERNS,
    MOST_REFUSED,
    _compiled,
    _outcome,
    _size,
    finds,
    is_plain,
    require_pattern,
)
from temper_core.profiles.matching import LONGEST_TITLE, matches
from temper_core.records.thread_groups import ThreadMatch
from temper_core.records.threads import ThreadIdentity

PROFILE = """
schema_version = 1
id = "search"
[[thread_groups]]
name = "hot"
match = [{ KEY = 'PATTERN' }]
"""


def thread(comm="any", title=""):
    return ThreadIdentity("pod/", comm, "main", title=title)


@pytest.mark.parametrize("pattern", [r"(\w+\s?)+$", "(a+)+$", "(a|a)+$", "(a|aa)+$", "(.*a){20}$"])
def test_a_title_that_holds_up_a_backtracking_engine_for_ever_is_judged(pattern):
    hostile = "a" * 4_000 + "!"

    assert not finds(pattern, hostile)
    assert finds(pattern, hostile[:-1])


def test_a_pattern_looks_at_no_more_than_the_begin_of_a_title():
    match = ThreadMatch(title_pattern="here")

    assert matches(match, thread(title="x" * (LONGEST_TITLE - 4) + "here"))
    assert not matches(match, thread(title="x" * (LONGEST_TITLE - 3) + "here"))


@pytest.mark.parametrize(
    "pattern", ["(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"(a)\1", "(?>a)", "a*+"]
)
@pytest.mark.parametrize("key", ["comm_pattern", "title_pattern"])
def test_what_needs_backtracking_is_refused_in_one_line(key, pattern):
    text = PROFILE.replace("KEY", key).replace("PATTERN", pattern)

    with pytest.raises(DocumentError) as caught:
        parse_profile(text, "search.toml")

    [problem] = caught.value.problems
    assert problem.startswith(
        f"thread_groups[0].match[0].{key}: must be a regular expression as RE2 takes them, "
        f"without look-around and backreferences, not {pattern!r}: "
    )
    assert "\n" not in problem


def test_a_plugin_cannot_make_a_match_that_cannot_be_judged():
    with pytest.raises(ValueError, match="'title_pattern' must be a regular expression"):
        ThreadMatch(title_pattern="(?=a)")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("a" * (LONGEST_PATTERN + 1), "at most 1000 characters, not 1001"),
        (r"(?:\pL?\pN?){200}", "pattern too large"),
        ("\ud800", "it is no Unicode text"),
    ],
)
def test_a_pattern_that_is_too_much_or_no_text_is_refused(pattern, problem):
    with pytest.raises(ValueError, match=problem):
        require_pattern(pattern)


def test_a_name_that_is_no_utf_8_is_judged_all_the_same():
    named = thread(comm=b"io-\xff-1".decode(errors="surrogateescape"))

    assert matches(ThreadMatch(comm_pattern="^io-.-1$"), named)
    assert not matches(ThreadMatch(comm_pattern="^io-1$"), named)


def test_letters_beyond_ascii_are_single_characters():
    assert finds("^größe.$", "größe→")


SIMPLE = st.recursive(
    st.sampled_from(["a", "b", "ä", ".", "[ab]", "[^a]", r"\.", "^", "$"]),
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda pair: "(?:{}|{})".format(*pair))
        | st.tuples(inner, st.sampled_from("*+?")).map(lambda pair: "(?:{}){}".format(*pair))
    ),
    max_leaves=6,
)


@given(SIMPLE, st.text("abä.", max_size=8))
def test_what_both_engines_take_means_the_same_to_both(pattern, text):
    assert finds(pattern, text) == (re.search(pattern, text) is not None)


@given(st.text("ab0 _-:/.,^$|?*+()[]{}\\\\Az9é\n", max_size=24))
def test_the_engine_takes_every_pattern_that_counts_as_plain(pattern):
    if is_plain(pattern):
        finds(pattern, "anything")


@pytest.mark.parametrize("piece", ["(", ")", "a|", "a?", "(a*)*", "[a-z]+", r"\(", "(.+)?"])
def test_the_engine_takes_plain_patterns_of_any_length(piece):
    most = LONGEST_PATTERN // len(piece)
    nested = "(" * (LONGEST_PATTERN // 2) + ")" * (LONGEST_PATTERN // 2)

    for pattern in (piece * most, nested):
        if is_plain(pattern):
            finds(pattern, "anything")


@pytest.mark.parametrize("pattern", ["a{2}", "(?:a)", "a??", "[z-a]", "(a", "a)", r"\pL", "ä", ""])
def test_what_is_no_plain_pattern_is_put_to_the_engine(pattern):
    assert not is_plain(pattern)


def run_python(script):
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_engine_of_patterns_is_loaded_by_the_first_that_needs_it():
    steps = (
        "ThreadMatch('io')",
        "ThreadMatch(comm_pattern='io')",
        "ThreadMatch(comm_pattern='i{2}')",
    )
    script = "import sys; from temper_core.records.thread_groups import ThreadMatch\n" + "".join(
        f"{step}; print('re2' in sys.modules)\n" for step in steps
    )

    assert run_python(script).split() == ["False", "False", "True"]


def test_no_profile_that_ships_loads_the_engine_before_a_pod_is_of_it():
    script = (
        "import sys; from temper_plugin_builtin_profiles.packs import read_packs;"
        "print(len(read_packs()) > 5, 're2' in sys.modules)"
    )

    assert run_python(script).split() == ["True", "False"]


def test_without_the_engine_a_profile_with_patterns_is_refused_in_one_line_with_its_remedy():
    profile = PROFILE.replace("KEY", "comm_pattern").replace("PATTERN", "^io")
    profile += '[[thread_groups]]\nname = "rest"\nmatch = [{ title_pattern = "x" }]\n'
    script = (
        "import sys; sys.modules['re2'] = None; import importlib.util as u; found = u.find_spec;"
        "u.find_spec = lambda name, *more: None if name == 're2' else found(name, *more)\n"
        "from temper_core import DocumentError, parse_profile\n"
        f"try: parse_profile({profile!r}, 'search.toml')\n"
        "except DocumentError as error: print(error)\n"
    )

    assert run_python(script) == (
        "search.toml: thread_groups[0].match[0].comm_pattern: needs RE2, which is not installed: "
        "pip install 'temper-agent[patterns]'\n"
    )


def profile_with(*patterns):
    matches = ", ".join(f"{{ comm_pattern = '{pattern}' }}" for pattern in patterns)
    return PROFILE.replace("{ KEY = 'PATTERN' }", matches)


LARGE = "(a|[b-y]|x?){1,900}"
"""A pattern of 3,600 instructions."""


@pytest.mark.parametrize(
    ("patterns", "problem"),
    [
        ([f"^n{n}-" for n in range(MOST_PATTERNS)], None),
        ([f"^n{n}-" for n in range(MOST_PATTERNS + 1)], "at most 64 different patterns, not 65"),
        ([f"{LARGE}{n}" for n in range(1_400)], "have 1400 matches, and a profile may have 256"),
        ([f"{LARGE}{n}" for n in range(4)], None),
        ([f"{LARGE}{n}" for n in range(5)], "have more than 16,384 instructions together"),
    ],
)
def test_the_patterns_of_a_profile_have_a_bound_together(patterns, problem):
    try:
        parse_profile(profile_with(*patterns), "a.toml")
        refusal = None
    except DocumentError as error:
        refusal = str(error)

    assert (refusal is None) is (problem is None)
    assert (problem or "") in (refusal or "")


TOO_LARGE = r"\pL{{0,{}}}"


@pytest.mark.parametrize(
    ("patterns", "most"),
    [
        ([TOO_LARGE.format(1_000)] * 250, 1),
        ([TOO_LARGE.format(1_000 - n) for n in range(MOST_PATTERNS)], MOST_REFUSED + 1),
        ([rf"{n}\pL{{0,30}}" for n in range(MOST_PATTERNS)], 4),
    ],
    ids=["one", "refused", "accepted"],
)
def test_few_patterns_of_a_refused_profile_are_compiled(monkeypatch, patterns, most):
    compile_pattern, compiled = re2.compile, []

    def counting(pattern, options):
        compiled.append(pattern)
        return compile_pattern(pattern, options)

    monkeypatch.setattr(re2, "compile", counting)
    _outcome.cache_clear()

    with pytest.raises(DocumentError):
        parse_profile(profile_with(*patterns), "a.toml")

    assert 0 < len(compiled) <= most


@given(st.from_regex(r"[a-z.\[\]()?*+^$|-]{1,40}", fullmatch=True).filter(is_plain))
def test_the_estimate_of_a_plain_pattern_is_no_less_than_its_program(pattern):
    assert _size(pattern) + EMPTY_PROGRAM >= _compiled(pattern).programsize


EMPTY_PROGRAM = 8
"""Instructions that every program has."""
