"""The pods of an arm, and what the agent's own compiler makes of them."""

import json

import pytest
from click.testing import CliRunner

from bench.ladder.agent import Files
from bench.ladder.arms import ARMS, CRITICAL
from bench.ladder.node import pods
from bench.ladder.pods import podlist
from temper_core.cli.explain import command

CPUS, REQUEST = 4, 1500
CRITICAL_ARMS = [
    name for name, arm in ARMS.items() if arm.priority == CRITICAL and not arm.is_stock
]


@pytest.fixture
def explained(tmp_path):
    machine = tmp_path / "machine.toml"
    machine.write_text(f"cores = {CPUS // 2}\nthreads_per_core = 2\n")

    def ask(arm, limit=0):
        files = Files(tmp_path)
        files.write(arm, tmp_path / "engine", podlist(pods(arm, REQUEST, limit, CPUS)))
        given = {"pods": files.pods, "settings": files.settings, "profiles": files.profiles}
        options = [f"--{key}={path}" for key, path in {**given, "machine": machine}.items()]
        asked = ["ladder/api", *options, "--steered", "--output=json"]
        return json.loads(CliRunner().invoke(command, asked).stdout)

    return ask


@pytest.fixture
def is_demoted(explained):
    return lambda *given: any(place["demoted"] for place in explained(*given)["places"])


@pytest.mark.parametrize("name", [name for name, arm in ARMS.items() if arm.pack])
def test_the_server_of_a_builtin_profiles_arm_has_that_profile(explained, name):
    assert explained(ARMS[name])["profile"] == ARMS[name].pack


@pytest.mark.parametrize("limit", [0, 1500])
@pytest.mark.parametrize("name", CRITICAL_ARMS)
def test_a_critical_server_is_demoted_on_a_crowded_node_only(is_demoted, name, limit):
    assert is_demoted(ARMS[name], limit) is ARMS[name].is_crowded


def test_a_crowded_node_has_no_cpu_left_to_request():
    present = pods(ARMS["demoted"], REQUEST, 0, CPUS)

    assert sum(pod.request for pod in present) == CPUS * 1000


def test_only_the_servers_pod_has_the_limit():
    present = pods(ARMS["demoted"], REQUEST, 1500, CPUS)

    assert [pod.limit for pod in present] == [1500, 0, 0]
