import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.suggestions import did_you_mean, similar

KNOWN = ("explain", "plan", "plugins", "profiles", "scheduler", "--tier", "--name")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("schedular", "scheduler"),
        ("sheduler", "scheduler"),
        ("shceduler", "scheduler"),
        ("expain", "explain"),
        ("explainn", "explain"),
        ("plam", "plan"),
        ("--tir", "--tier"),
        ("brew", None),
        ("", None),
        ("x", None),
        ("completely-else", None),
    ],
)
def test_a_word_with_one_mistake_is_recognised(word, meant):
    assert similar(word, KNOWN) == meant


def test_a_message_ends_with_the_word_that_was_meant():
    assert did_you_mean("plam", KNOWN) == "; did you mean 'plan'?"
    assert did_you_mean("brew", KNOWN) == ""


@given(st.text(), st.lists(st.text()))
def test_any_text_has_a_known_word_or_none(word, known):
    assert similar(word, known) in {None, *known}


@given(st.sampled_from(KNOWN))
def test_a_known_word_is_meant_itself(word):
    assert similar(word, KNOWN) == word


def test_a_long_word_takes_no_time():
    assert similar("x" * 10_000_000, ["x" * 40] * 100) is None
