"""The environment of these tests: the agent's wheel, an example, and one that abuses each part."""

from pathlib import Path

import pytest

from tests.installed.wheels import ROOT, environment_by_uv

HERE = Path(__file__).parent
DISTRIBUTIONS = (
    ROOT,
    ROOT / "libs/temper_kube",
    ROOT / "plugins/kubernetes",
    ROOT / "examples/temper-plugin-run-delay",
    HERE / "temper-plugin-abusive",
)


@pytest.fixture(scope="session")
def environment(wheel_of, tmp_path_factory):
    """Return an environment that holds both, the plugin with kubectl temper, and pytest."""
    wheels = [wheel_of(project) for project in DISTRIBUTIONS]
    return environment_by_uv(["pytest", *wheels], tmp_path_factory.mktemp("door"))
