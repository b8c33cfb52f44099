import subprocess
import sys
from pathlib import Path

import pytest

import temper_plugin_console
from temper_core.records.snapshots import SCHEMA_VERSION
from temper_core.testing import assert_keeps_contract
from temper_plugin_console.diff import OBSERVATION_VERSION

TEMPER = Path(sys.executable).with_name("temper")
COMMANDS = {command.name: command for command in temper_plugin_console.temper_commands()}
ASK_THE_PLUGIN = """
import sys
import temper_plugin_console
temper_plugin_console.temper_commands()
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"click", "rich"}))
"""


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_console, "console")


@pytest.mark.parametrize("name", ["diff", "map", "top"])
def test_every_command_explains_itself_and_exits_clean(name):
    done = subprocess.run([TEMPER, name, "--help"], check=False, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: temper {name} [OPTIONS]")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_name_that_it_is_listed_by(name):
    assert COMMANDS[name].load().name == name


def test_what_the_commands_are_made_of_is_imported_only_when_one_is_called():
    asked = subprocess.run(
        [sys.executable, "-c", ASK_THE_PLUGIN], check=True, capture_output=True, text=True
    )

    assert asked.stdout.strip() == ""


def test_observations_of_this_version_of_temper_can_be_compared():
    assert OBSERVATION_VERSION == SCHEMA_VERSION
