import subprocess

import pytest

from tests.core.agent.running_agent import RunningAgent

# A busy machine starves the tests themselves. A run would take that for the doing of its trial.
WORKLOAD = """
[[workloads]]
name = "spin"
process = "sh"
tier = "critical"
cpu_request = "2"

[plugins.linter]
starved_s = 3600.0
contended_cpu = 10000.0
"""


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
