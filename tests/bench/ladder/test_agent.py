import tomllib
from pathlib import Path

import pytest

from bench.ladder.agent import Files, hashed, merged, to_toml
from bench.ladder.arms import ARMS, HIGH, Arm
from temper_core.profiles.documents import parse_profile
from temper_core.settings.reader import load

ENGINE = Path("/opt/scx_layered")


def test_nested_tables_survive_being_written_as_toml():
    table = {"a": 'x"y', "t": {"n": 1, "f": 2.5, "yes": True, "u": {"list": [1, 2]}}}

    assert tomllib.loads(to_toml(table)) == table


def test_a_table_is_merged_and_a_value_is_replaced():
    below, above = {"t": {"a": 1, "b": 2}, "v": 1}, {"t": {"b": 3}, "v": {"w": 4}}

    assert merged(below, above) == {"t": {"a": 1, "b": 3}, "v": {"w": 4}}


def test_a_hash_of_nothing_is_empty():
    assert hashed("") == ""
    assert len(hashed("x")) == 12


@pytest.mark.parametrize("name", ARMS)
def test_the_settings_of_every_arm_are_the_agents(tmp_path, name):
    files = Files(tmp_path)

    files.write(ARMS[name], ENGINE, "{}")

    settings = load(files.settings).settings
    assert settings.scheduler.engine == str(ENGINE)
    assert settings.tiers.critical.preempt is (name == "preempt")
    assert (settings.tiers.critical.isolation == "lend") is (name == "lend")


@pytest.mark.parametrize("name", [name for name, arm in ARMS.items() if arm.profile])
def test_the_profile_of_every_arm_is_one(name):
    assert parse_profile(ARMS[name].profile, name).id == "ladder"


def test_an_arm_leaves_nothing_of_the_one_before(tmp_path):
    files = Files(tmp_path)
    files.write(Arm(is_stock=True, profile='id = "ladder"'), ENGINE, "{}")
    assert files.safe_mode.exists()

    files.write(Arm(), ENGINE, "{}")

    assert not files.safe_mode.exists()
    assert list(files.profiles.iterdir()) == []


def test_an_arm_may_have_a_tier_of_its_own():
    assert ARMS["high"].priority == HIGH
