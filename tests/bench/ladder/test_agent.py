import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.ladder.agent import Agent, Files, NotInTime, hashed, merged, to_toml
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


def make_agent(monkeypatch, profiles):
    answers = iter(profiles)
    ended = SimpleNamespace(poll=lambda: None)
    agent = Agent(ended, Path("cgroup"), Path("log"))
    monkeypatch.setattr(agent, "ask", lambda _: {"profile": next(answers)})
    monkeypatch.setattr("time.sleep", lambda _: None)
    return agent, answers


def test_an_arm_with_a_builtin_profile_waits_until_the_pod_has_it(monkeypatch):
    agent, left = make_agent(monkeypatch, ["", "", "redis", "later"])

    agent.wait_for_profile("api", "redis")

    assert list(left) == ["later"]


def test_a_profile_that_never_comes_ends_the_ladder(monkeypatch):
    agent, _ = make_agent(monkeypatch, ["other"] * 9)
    monkeypatch.setattr("bench.ladder.agent.ENFORCING_S", 0.0)

    with pytest.raises(NotInTime, match="api has not the profile redis"):
        agent.wait_for_profile("api", "redis")


def test_an_arm_leaves_nothing_of_the_one_before(tmp_path):
    files = Files(tmp_path)
    files.write(Arm(is_stock=True, profile='id = "ladder"'), ENGINE, "{}")
    assert files.safe_mode.exists()

    files.write(Arm(), ENGINE, "{}")

    assert not files.safe_mode.exists()
    assert list(files.profiles.iterdir()) == []


@pytest.mark.parametrize(
    ("places", "told"),
    [
        ([{"demoted": False}, {"demoted": True}], True),
        ([{"demoted": False}], False),
        ([], False),
    ],
    ids=["one-of-two", "no-layer", "no-answer"],
)
def test_a_pod_is_demoted_with_any_of_its_layers(monkeypatch, places, told):
    agent = Agent(None, Path("/none"), Path("/none"))
    answers = {"/explain?pod=ladder/api": {"places": places} if places else {}}
    monkeypatch.setattr(agent, "ask", answers.get)

    assert agent.is_demoted("api") is told


def test_an_arm_may_have_a_tier_of_its_own():
    assert ARMS["high"].priority == HIGH
