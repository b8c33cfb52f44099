"""The built wheels, installed as users install them, with both ends of all version ranges."""

import pytest

from tests.install.interpreters import VERSIONS
from tests.install.pins import ENDS, FILES, needed_by, plugins, projects, write_pins
from tests.install.tools import TOOLS, by_uv_pip, run
from tests.install.trial import (
    number_of_commands,
    observed,
    observing,
    plugins_of,
    scraped,
    version_of,
)

EXPECTED = f"temper, version {projects()['temper-agent'][1]['version']}"
CORE = {"core"}
ALL = CORE.union(*plugins().values())


def check(commands, names, folder):
    """Assert that the installed agent and exactly its plugins *names* work; return its figures."""
    assert version_of(commands) == EXPECTED
    assert plugins_of(commands) == dict.fromkeys(names, "active")
    found = number_of_commands(commands)
    with observing(commands, folder / "agent") as address:
        threads = len(observed(address)["threads"])
        samples = scraped(address)
    failures = {name: value for name, value in samples.items() if "plugin_failures" in name}
    assert samples['temper_mode{mode="observe_only"}'] == 1
    assert not any(failures.values())
    return {"subcommands": found, "threads": threads, "samples": len(samples)}


@pytest.mark.parametrize("python", VERSIONS, indirect=True)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("tool", TOOLS)
def test_the_agent_with_all_plugins(tool, end, python, wheels, report, tmp_path):
    pins = write_pins(FILES, end, wheels, python, tmp_path / "pins.txt")

    commands = TOOLS[tool]("temper-agent[all]", wheels, pins, python, tmp_path)

    assert "resize" in run(commands / "kubectl-temper", "--help").stdout
    report.holds(commands, **check(commands, ALL, tmp_path))


@pytest.mark.parametrize("python", VERSIONS[:1], indirect=True)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", plugins())
def test_a_plugin_alone_with_the_core(name, end, python, wheels, report, tmp_path):
    pins = write_pins(needed_by(name), end, wheels, python, tmp_path / "pins.txt")

    commands = by_uv_pip(name, wheels, pins, python, tmp_path)

    report.holds(commands, **check(commands, CORE.union(plugins()[name]), tmp_path))


@pytest.mark.parametrize("python", VERSIONS[:1], indirect=True)
@pytest.mark.parametrize("end", ENDS)
def test_the_core_alone(end, python, wheels, report, tmp_path):
    pins = write_pins(needed_by("temper-agent"), end, wheels, python, tmp_path / "pins.txt")

    commands = by_uv_pip("temper-agent", wheels, pins, python, tmp_path)

    report.holds(commands, **check(commands, CORE, tmp_path))
