"""What ``temper plugins new`` of an installed agent writes, built and installed beside it."""

import json

import pytest

from tests.installed.wheels import ROOT, build, environment_by_uv, run


@pytest.fixture(scope="module")
def environment(wheel_of, tmp_path_factory):
    return environment_by_uv([wheel_of(ROOT)], tmp_path_factory.mktemp("new"))


def test_it_is_active_once_it_is_installed(environment, tmp_path):
    temper = environment / "bin/temper"
    run(temper, "plugins", "new", "slow-pods", "--directory", tmp_path)

    wheel = build(tmp_path / "temper-plugin-slow-pods", tmp_path / "dist")
    target = tmp_path / "installed"
    run(environment / "bin/python", "-m", "zipfile", "-e", wheel, target)
    shown = run(temper, "plugins", "--output", "json", env={"PYTHONPATH": str(target)})

    states = {each["name"]: each for each in json.loads(shown.stdout)}
    assert states["slow-pods"]["state"] == "active"
    assert states["slow-pods"]["distribution"] == "temper-plugin-slow-pods"
    assert set(states["slow-pods"]["hooks"]) == {"temper_invariants", "temper_settings"}
