import pytest

import temper_plugin_trainer
from temper_core import Command
from temper_core.testing import assert_keeps_contract


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_trainer, "trainer")


@pytest.fixture
def contributions(host):
    host.add(temper_plugin_trainer, "trainer")
    return [each.record for each in host.gather("temper_commands", Command)]


def test_the_commands_are_added_to_temper_and_temper_profiles(contributions):
    added = {(each.under, each.name) for each in contributions}

    profiles = {("temper profiles", "record"), ("temper profiles", "test")}
    assert added == {("temper", "train"), ("kubectl temper", "train"), *profiles}


def test_each_command_is_loaded_under_its_own_name(contributions):
    assert [each.load().name for each in contributions] == [each.name for each in contributions]
