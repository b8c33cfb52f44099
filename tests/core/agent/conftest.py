"""Agents and load for the tests of running agents."""

import subprocess
from contextlib import ExitStack

import pytest

from tests.core.agent.running_agent import RunningAgent


@pytest.fixture
def start(tmp_path):
    with ExitStack() as running:

        def launch(*options, **given):
            agent = RunningAgent(tmp_path, *options, **given)
            running.callback(agent.stop)
            return agent

        yield launch


@pytest.fixture
def busy_process():
    spinner = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    yield spinner
    spinner.kill()
    spinner.wait()
