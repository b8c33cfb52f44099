"""``temper doctor`` on the real machine: it looks, explains, and its exit code tells."""

import json

import pytest
from click.testing import CliRunner

from temper_core.cli.doctor import command


@pytest.fixture
def doctor(tmp_path):
    """Run the command on this machine, with directories and an agent's socket of the test's own."""

    def run(*options, scheduler=""):
        settings = tmp_path / "agent.toml"
        own = f'run_directory = "{tmp_path}/run"\n[server]\nlisten = ""\n'
        settings.write_text(f"{own}[scheduler]\n{scheduler}\n")
        return CliRunner().invoke(command, ["--settings", str(settings), *options])

    return run


def test_every_check_is_told_to_machines_and_the_exit_code_agrees(doctor):
    result = doctor("--output", "json")

    told = json.loads(result.stdout)
    failures = [check for check in told["checks"] if check["state"] == "failed"]
    assert result.exit_code == (3 if failures else 0)
    assert told["can_enforce"] == (not failures)
    assert all(check["remedy"] for check in failures)
    assert {"sched_ext", "cgroup_v2", "engine"} <= {check["name"] for check in told["checks"]}


def test_people_get_a_line_per_check_with_the_remedy_below_and_the_quota_caveat(doctor):
    told = json.loads(doctor("--output", "json").stdout)

    output = doctor().stdout

    for check in told["checks"]:
        assert check["name"] in output
        assert not check["remedy"] or f"-> {check['remedy']}" in output
    assert "does not enforce cgroup cpu.max" in output


def test_the_engine_that_the_settings_name_is_the_one_that_is_looked_for(doctor):
    result = doctor("--output", "json", scheduler='engine = "/nowhere/scx_layered"')

    engine = next(one for one in json.loads(result.stdout)["checks"] if one["name"] == "engine")
    assert (engine["state"], result.exit_code) == ("failed", 3)
    assert "/nowhere/scx_layered" in engine["detail"]


def test_settings_with_a_mistake_are_the_users_error(tmp_path):
    settings = tmp_path / "agent.toml"
    settings.write_text("[scheduler]\nengin = 1\n")

    result = CliRunner().invoke(command, ["--settings", str(settings)])

    assert "unknown key 'engin'" in str(result.exception)


@pytest.mark.parametrize("state", ["ok", "warning"])
def test_an_engine_that_answers_is_found_and_its_version_judged(world, doctor, state):
    if state == "warning":
        world.binary.write_text("#!/bin/sh\necho 'scx_layered 99.0.0 x86_64'\n")

    result = doctor("--output", "json", scheduler=f'engine = "{world.binary}"')

    engine = next(one for one in json.loads(result.stdout)["checks"] if one["name"] == "engine")
    assert engine["state"] == state
