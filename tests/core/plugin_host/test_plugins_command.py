import json

import pytest
from click.testing import CliRunner

from temper_core import PluginError
from temper_core.cli.plugins.list import command

RAISES = """
    from temper_core import hookimpl

    @hookimpl
    def temper_invariants():
        raise OSError("no licence file")
"""


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def states_in(result):
    return {state["name"]: state for state in json.loads(result.stdout)}


def test_first_party_plugins_are_active_with_their_hooks():
    states = states_in(run("--output", "json"))

    assert states["linter"]["state"] == states["builtin-profiles"]["state"] == "active"
    assert "temper_invariants" in states["linter"]["hooks"]
    assert states["linter"]["distribution"] == "temper-plugin-linter"


def test_what_the_core_contributes_itself_is_shown_too():
    core = states_in(run("--output", "json"))["core"]

    assert (core["state"], core["hooks"]) == ("active", ["temper_pod_sources"])


@pytest.fixture
def broken(install):
    install("unlicensed", RAISES)


@pytest.mark.usefixtures("broken")
def test_a_plugin_whose_hook_raises_is_shown_as_set_aside_and_the_list_succeeds():
    result = run("--output", "json")

    assert result.exit_code == 0
    assert states_in(result)["unlicensed"]["state"] == "set_aside"
    assert states_in(result)["unlicensed"]["failure"].startswith("OSError: no licence file (")
    assert states_in(result)["linter"]["state"] == "active"


@pytest.mark.usefixtures("broken")
def test_the_table_shows_the_reason():
    assert "no licence file" in " ".join(run().stdout.split())


@pytest.mark.usefixtures("broken")
def test_strictness_is_an_error_after_the_whole_list():
    result = run("--strict-plugins", "--output", "json")

    assert isinstance(result.exception, PluginError)
    assert result.exception.exit_code == 2
    assert states_in(result)["linter"]["state"] == "active"


@pytest.mark.usefixtures("broken")
def test_the_settings_can_be_strict_too(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text("[plugin_host]\nstrict = true\n")

    assert isinstance(run("--settings", path).exception, PluginError)


def test_a_plugin_that_is_not_allowed_is_no_failure(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text('[plugin_host]\nallow = ["linter"]\n')

    result = run("--settings", path, "--strict-plugins", "--output", "json")

    assert result.exit_code == 0
    assert states_in(result)["builtin-profiles"]["state"] == "not_allowed"
