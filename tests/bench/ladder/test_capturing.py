import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.ladder.agent import Agent
from bench.ladder.capturing import captured

NONE = Path("/none")


@pytest.fixture
def agent() -> Iterator[Agent]:
    with subprocess.Popen(["sleep", "infinity"]) as process:
        yield Agent(process, NONE, NONE)
        process.kill()


def state_of(agent: Agent) -> str:
    return Path(f"/proc/{agent.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_halted_agent_does_not_run_and_gives_no_answer(agent):
    with agent.halted():
        assert state_of(agent) == "T"
        assert agent.ask("/observe") == {}

    assert state_of(agent) != "T"


@pytest.mark.parametrize(("kind", "is_halted"), [("none", False), ("nothing", True)])
def test_without_a_capture_only_one_kind_halts_the_agent(agent, kind, is_halted):
    with captured(agent, NONE, kind, NONE) as told:
        assert (state_of(agent) == "T") is is_halted

    assert told == {"capture": kind}
