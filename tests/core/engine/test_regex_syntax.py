import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.engine.binary import verify_offline
from temper_core.engine.regex_syntax import regex_fault

COMPILES = [
    "",
    r"kubepods.*pod(?:a|b)/",
    r"pod(?P<uid>[0-9a-f_]{36})\.slice",
    "(?<uid>x)",
    "(?i)a(?s-m:.)",
    "a**",
    "a{2}{3}?",
    "[]a]",
    "[^]a-]",
    "[a-z&&[^aeiou]]",
    "[[:alpha:]_]",
    r"[\w.-]+\/\_\-",
    r"\x41\x{263a}\u0041\b{start}\A\z",
    r"\pL\p{Lu}",
    "a|",
    "]}",
]
STRICTER_THAN_RUST = {"(?x) a": "verbose", r"(?-u:\w)": "not supported here"}
DOES_NOT_COMPILE = {
    "(?=a)": "look-around",
    "(?<!a)": "look-around",
    r"(a)\1": "back-references",
    "(?P=n)": "no flag",
    "(?>a)": "no flag",
    "(?)": "sets no flag",
    "(?ii)": "given twice",
    "(?z)": "not known",
    "(": "not closed",
    ")": "not opened",
    "(?P<1>a)": "cannot be named '1'",
    "(?P<a": "cannot be named",
    "(?P<a>x)(?P<a>y)": "two groups are named 'a'",
    "*a": "nothing that '*' could repeat",
    "(?i)*": "nothing that",
    "a|+": "nothing that",
    "a{": "followed by a count",
    "a{,2}": "followed by a count",
    "a{3,2}": "wrong order",
    "a{4294967296}": "too large",
    "a{1000000}": "too large",
    r"\w{1000}": "too large",
    "(" * 300 + ")" * 300: "nests too deeply",
    "a" + "?*" * 300: "nests too deeply",
    "[a": "not closed",
    "[]": "not closed",
    "[z-a]": "wrong order",
    r"[\d-z]": "a letter at both ends",
    r"[\b]": "stands for no letter",
    "a\\": "ends with a backslash",
    r"\Z": "is not known",
    r"\é": "is not known",
    r"\xZZ": "hexadecimal digits",
    r"\u{d800}": "is no character",
    r"\p{Foo}": "property is not known",
    r"\b{foo}": "boundary is not known",
}


def template(pattern: str) -> str:
    """Put *pattern* where the engine compiles it before it looks at the kernel."""
    rest = {"name": "rest", "matches": [[]], "kind": {"Open": {}}}
    layer = {**rest, "matches": [[{"UIDEquals": 1}]], "template": {"CgroupRegex": pattern}}
    return json.dumps([layer, rest])


@pytest.mark.parametrize("pattern", COMPILES)
def test_what_rust_takes_has_no_fault(pattern):
    assert regex_fault(pattern) is None


@pytest.mark.parametrize(("pattern", "why"), (DOES_NOT_COMPILE | STRICTER_THAN_RUST).items())
def test_what_rust_does_not_take_has_a_fault(pattern, why):
    assert why in (regex_fault(pattern) or "")


@given(st.text() | st.text(alphabet=r"()[]{}?*+|\^$-&:<>P=ab12,xpLudw.", max_size=12))
def test_any_text_gets_an_answer(pattern):
    fault = regex_fault(pattern)

    assert fault is None or fault.isprintable()


BRACKETS = ("[", "]", "[^", "[:alpha:]", "&&", "~~", "-", "(", ")", "(?:", "(?i)")
REPEATS = ("*", "+", "{2}", "{", "}", "|")
LETTERS = ("a", "é", ".", "^", "$", r"\d", r"\b", r"\z", r"\.", r"\/", r"\x41", r"\pL")
PIECES = st.sampled_from([*BRACKETS, *REPEATS, *LETTERS])


@settings(max_examples=40)
@given(st.lists(PIECES, min_size=1, max_size=7).map("".join))
def test_the_real_engine_compiles_whatever_has_no_fault(offline_engine, pattern):
    _, said = verify_offline(offline_engine, template(pattern))
    # A template that compiles and finds a cgroup without a cpuset ends in another panic.
    compiles = "Syntax(" not in said and "CompiledTooBig" not in said

    assert compiles == (regex_fault(pattern) is None), said


@pytest.mark.parametrize("pattern", [*COMPILES, *DOES_NOT_COMPILE])
def test_the_real_engine_agrees_on_each_pattern(offline_engine, pattern):
    _, said = verify_offline(offline_engine, template(pattern))
    compiles = "Syntax(" not in said and "CompiledTooBig" not in said

    assert compiles == (pattern in COMPILES), said
