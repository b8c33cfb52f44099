import subprocess

import pytest

from tests.core.agent.running_agent import RunningAgent

WORKLOAD = '[[workloads]]\nname = "spin"\nprocess = "sh"\ntier = "critical"\ncpu_request = "2"\n'


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """A real agent that observes, with the workload ``spin``."""
    program = subprocess.Popen(["sh", "-c", "while :; do sleep 0.01; done"])
    running = RunningAgent(tmp_path_factory.mktemp("agent"), settings=WORKLOAD)
    try:
        running.wait_for(
            lambda: [row for row in (running.observation() or {}).get("pods", []) if row], "pods"
        )
        yield running
    finally:
        running.stop()
        program.kill()
        program.wait()
