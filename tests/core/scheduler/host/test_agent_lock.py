"""Two agents at once: the second is told, and a dead one stands in nobody's way."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from temper_core.errors import EXIT_MACHINE, MachineError
from temper_core.scheduler.host.agent_lock import (
    AnotherAgentError,
    agent_lock,
    is_beside_agent,
)
from temper_core.settings.models import SchedulerSettings, Settings

AGENT = """
import sys, time
from pathlib import Path
from temper_core.scheduler.host.agent_lock import agent_lock
with agent_lock(Path(sys.argv[1])) as is_held:
    print(is_held, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def other(tmp_path):
    """Another agent, in a process of its own, that holds the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_a_second_agent_is_refused_and_told_who_runs(tmp_path, other):
    with pytest.raises(AnotherAgentError) as raised, agent_lock(tmp_path / "run"):
        pytest.fail("two agents hold the lock")

    assert f"process {other.pid} holds {tmp_path}/run/agent.lock" in str(raised.value)
    assert raised.value.exit_code == EXIT_MACHINE


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_agent_that_is_gone_stands_in_nobodys_way(tmp_path, other, end):
    other.send_signal(end)
    other.wait()

    with agent_lock(tmp_path / "run") as is_held:
        assert is_held
        assert (tmp_path / "run/agent.lock").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("enforce", [True, False])
def test_an_agent_that_only_observes_knows_of_one_that_may_enforce(tmp_path, other, enforce):
    (tmp_path / "sched_ext").mkdir()
    roots = SimpleNamespace(node=tmp_path / "run", sched_ext=tmp_path / "sched_ext")
    settings = Settings(scheduler=SchedulerSettings(enforce=enforce))
    is_beside = is_beside_agent(settings, roots)
    other.kill()
    other.wait()

    assert is_beside is not enforce
    assert not is_beside_agent(settings, roots)


def test_an_agent_starts_although_another_process_looks_at_the_lock(tmp_path, monkeypatch):
    (tmp_path / "agent.lock").touch()
    with (tmp_path / "agent.lock").open() as look:
        fcntl.flock(look, fcntl.LOCK_SH)
        monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(look, fcntl.LOCK_UN))

        with agent_lock(tmp_path) as is_held:
            assert is_held


def test_the_lock_leaves_neither_file_nor_directory_nor_descriptor(tmp_path):
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())

    with agent_lock(tmp_path / "run"):
        assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700

    assert not list(tmp_path.iterdir())
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before


def test_a_directory_that_was_there_or_is_used_stays(tmp_path):
    with agent_lock(tmp_path):
        pass
    with agent_lock(tmp_path / "run"):
        (tmp_path / "run/agent.sock").touch()

    assert [one.name for one in (tmp_path / "run").iterdir()] == ["agent.sock"]


def test_a_lock_that_cannot_be_removed_does_not_spoil_the_end(tmp_path):
    lock = tmp_path / "agent.lock"

    with agent_lock(tmp_path):
        lock.unlink()
        lock.mkdir()

    assert lock.is_dir()


def test_the_lock_is_free_again_after_the_agent_failed(tmp_path):
    def fail() -> None:
        with agent_lock(tmp_path / "run"):
            raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        fail()

    with agent_lock(tmp_path / "run") as is_held:
        assert is_held


def test_an_engine_does_not_inherit_the_lock(tmp_path):
    with agent_lock(tmp_path / "run"):
        child = subprocess.Popen(["sleep", "600"], close_fds=False)

    with child, agent_lock(tmp_path / "run") as is_held:
        child.kill()
        assert is_held


FORKS = """
import os, sys, time
from pathlib import Path
from temper_core.scheduler.host.agent_lock import agent_lock

with agent_lock(Path(sys.argv[1])):
    if not os.fork():
        print(os.getpid(), flush=True)
    time.sleep(600)
"""


def test_a_forked_child_that_ends_leaves_the_lock_to_its_agent(tmp_path):
    program = """
import os, sys
from pathlib import Path
from temper_core.scheduler.host.agent_lock import agent_lock

with agent_lock(Path(sys.argv[1])):
    child = os.fork()
    if not child:
        sys.exit()
    os.waitpid(child, 0)
    print(os.listdir(sys.argv[1]))
"""
    command = [sys.executable, "-c", program, str(tmp_path)]

    assert subprocess.check_output(command, text=True) == "['agent.lock']\n"


def test_a_forked_child_does_not_keep_the_lock_of_a_killed_agent(tmp_path):
    command = [sys.executable, "-c", FORKS, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as agent:
        child = int(agent.stdout.readline())
        agent.kill()

    try:
        with agent_lock(tmp_path / "run") as is_held:
            assert is_held
    finally:
        os.kill(child, signal.SIGKILL)


def test_where_no_file_can_be_made_an_agent_goes_without(tmp_path):
    (tmp_path / "run").write_text("a file is in the way")

    with agent_lock(tmp_path / "run") as is_held:
        assert not is_held


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("data")
    (tmp_path / "agent.lock").symlink_to(tmp_path / "precious")

    with pytest.raises(MachineError, match="is not a regular file"), agent_lock(tmp_path):
        pass

    assert (tmp_path / "precious").read_text() == "data"
