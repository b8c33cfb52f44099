"""The rightsizer as a plugin."""

import pytest

import temper_plugin_rightsizer
from temper_core import InputError, Request
from temper_core.testing import MadeContext, assert_keeps_contract
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
    (endpoint,) = Rightsizer.of(Options(), MadeContext(folder=tmp_path)).endpoints()

    with pytest.raises(InputError, match="hours must be a whole number from 1 to 336") as refused:
        endpoint.answer(Request({"hours": hours}))

    assert len(str(refused.value)) < 100
