"""The rightsizer as a plugin."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import temper_plugin_rightsizer
from temper_core import InputError, Request
from temper_core.testing import MadeContext, assert_keeps_contract
from temper_plugin_rightsizer.advice.options import LONGEST_NUMBER, AdviceOptions
from temper_plugin_rightsizer.node.instrument import Rightsizer
from temper_plugin_rightsizer.options import Options


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_rightsizer, "rightsizer")


def test_opening_it_touches_no_disk(tmp_path):
    context = MadeContext(folder=tmp_path)

    rightsizer = Rightsizer.of(Options(), context)

    assert list(rightsizer.defects()) == []
    assert not list(tmp_path.rglob("*.sqlite"))


@pytest.mark.parametrize("hours", ["0", "337", "-1", "6.5", "", "\u0665", "1" * 5000])
def test_hours_out_of_range_are_refused_in_one_line(tmp_path, hours):
    (endpoint, _) = Rightsizer.of(Options(), MadeContext(folder=tmp_path)).endpoints()

    with pytest.raises(InputError, match="hours must be a whole number from 1 to 336") as refused:
        endpoint.answer(Request({"hours": hours}))

    assert len(str(refused.value)) < 100


@given(st.floats(0.5, 1.0))
def test_a_choice_within_bounds_is_taken(percentile):
    options = AdviceOptions.of({"percentile": f"{percentile:g}", "unknown": "1"})

    assert options == AdviceOptions(percentile=float(f"{percentile:g}"))


@given((st.text(max_size=30) | st.floats().map(str)).filter(lambda text: not is_choice(text)))
def test_any_other_choice_is_refused_in_one_line(text):
    with pytest.raises(InputError, match="percentile must be a number") as refused:
        AdviceOptions.of({"percentile": text})

    assert len(str(refused.value)) < 300
    assert str(refused.value).isprintable()


def is_choice(text):
    with suppress(ValueError):
        return len(text) <= LONGEST_NUMBER and 0.5 <= float(text) <= 1.0
    return False


def test_a_choice_out_of_bounds_is_refused_by_the_endpoint(tmp_path):
    (endpoint, _) = Rightsizer.of(Options(), MadeContext(folder=tmp_path)).endpoints()

    with pytest.raises(InputError, match="margin must be a number from 1 to 4, not 'nan'"):
        endpoint.answer(Request({"margin": "nan"}))
