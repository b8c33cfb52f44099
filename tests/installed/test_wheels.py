"""The distributions as users get them: wheels, installed by plain pip into an empty environment."""

import json
import shutil

import pytest

from tests.installed.wheels import ROOT, environment_by_pip, run

PROJECTS = (
    ROOT,
    *sorted(path.parent for path in ROOT.glob("libs/*/pyproject.toml")),
    *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")),
)


@pytest.fixture(scope="module")
def environment(wheel_of, tmp_path_factory):
    """Build the wheels, and return an environment that holds them and what they depend on."""
    return environment_by_pip(map(wheel_of, PROJECTS), tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def temper(environment):
    def call(*arguments, check=True):
        return run(environment / "bin" / "temper", *arguments, check=check)

    return call


@pytest.fixture
def broken(environment):
    """Install a third plugin, whose module cannot be imported; take it away afterwards."""
    [site] = environment.glob("lib/python*/site-packages")
    module, info = site / "temper_plugin_broken.py", site / "temper_plugin_broken-9.dist-info"
    module.write_text("import a_module_that_nobody_has\n")
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: temper-plugin-broken\nVersion: 9\n"
    )
    (info / "entry_points.txt").write_text("[temper.plugins]\nbroken = temper_plugin_broken\n")
    yield
    module.unlink()
    shutil.rmtree(info)


def states_in(listed):
    return {state["name"]: state for state in json.loads(listed.stdout)}


def test_the_first_party_plugins_are_found_and_active(temper):
    states = states_in(temper("plugins", "--output", "json"))

    assert {name: state["state"] for name, state in states.items()} == {
        "builtin-profiles": "active",
        "console": "active",
        "dashboard": "active",
        "density": "active",
        "core": "active",
        "kubernetes": "active",
        "linter": "active",
        "power": "active",
        "rightsizer": "active",
        "tracer": "active",
        "trainer": "active",
    }
    assert states["linter"]["distribution"] == "temper-plugin-linter"


def test_bpf_objects_travel_with_the_wheels_that_load_them(environment):
    [site] = environment.glob("lib/python*/site-packages")

    objects = {path.relative_to(site).as_posix() for path in site.glob("temper*/**/*.bpfl")}

    assert {
        "temper_core/bpf/probe.bpfl",
        "temper_plugin_tracer/wakes.bpfl",
        "temper_plugin_tracer/wakes_plain.bpfl",
    } <= objects


@pytest.mark.usefixtures("broken")
def test_a_broken_plugin_is_set_aside_and_the_others_work(temper):
    states = states_in(temper("plugins", "--output", "json"))

    assert states["broken"]["state"] == "set_aside"
    assert "a_module_that_nobody_has" in states["broken"]["failure"]
    assert states["linter"]["state"] == states["builtin-profiles"]["state"] == "active"


@pytest.mark.usefixtures("broken")
def test_strictness_makes_a_broken_plugin_an_exit_code(temper):
    listed = temper("plugins", "--strict-plugins", check=False)

    assert listed.returncode == 2
    assert "temper: plugin 'broken'" in listed.stderr
    assert "Traceback" not in listed.stderr


def test_the_packs_travel_with_their_wheel(temper, tmp_path):
    listed = temper("profiles", "--profiles", tmp_path, "--output", "json")

    packs = ROOT.glob("plugins/builtin_profiles/temper_plugin_builtin_profiles/packs/*.toml")
    found = {profile["id"] for profile in json.loads(listed.stdout)["profiles"]}
    assert found == {path.stem for path in packs}


def test_a_plugins_command_is_a_command_of_temper(temper, tmp_path):
    answer = tmp_path / "answer.json"
    answer.write_text('{"at": "2026-01-01T00:00:00Z", "violations": []}')

    linted = temper("lint", "--from", answer)

    assert linted.stdout == "No violations.\n"


def test_nothing_of_the_workspace_is_in_what_was_installed(environment):
    [site] = environment.glob("lib/python*/site-packages")
    metadata = [path.read_text() for path in site.glob("temper_*.dist-info/METADATA")]

    assert len(metadata) == len(PROJECTS)
    assert not any(str(ROOT) in text for text in metadata)
