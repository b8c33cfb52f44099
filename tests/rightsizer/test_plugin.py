"""The rightsizer as a plugin."""

import temper_plugin_rightsizer
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
