"""The engine as a child: tied to the agent's life, shielded from its terminal, drained always."""

import errno
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from temper_core.errors import EngineError
from temper_core.scheduler import pre_exec_script
from temper_core.scheduler.engine_process.command_line import Launch
from temper_core.scheduler.engine_process.process import EngineProcess, spawn
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.preflight.node_checks import own_engine
from tests.patience import PATIENCE_S

AGENT = """
import sys, time
from pathlib import Path
from temper_core.scheduler.engine_process.command_line import Launch
from temper_core.scheduler.engine_process.process import spawn
arguments = ("-c", "exec sleep 600")
process = spawn(Launch(Path("/bin/sh"), "[]", Path(sys.argv[1]), arguments=arguments))
print(process.pid, flush=True)
time.sleep(600)
"""


def wait_for(fact: Callable[[], object]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not fact():
        assert time.monotonic() < limit
        time.sleep(0.005)


def is_running(pid: int) -> bool:
    """Whether it lives; an orphan may stay a zombie for want of an init that reaps."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., EngineProcess]]:
    started: list[EngineProcess] = []

    def run(*command: str, **options) -> EngineProcess:
        binary, *arguments = command
        launch = Launch(Path(binary), "[]", tmp_path / "run", arguments=tuple(arguments), **options)
        started.append(spawn(launch))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        wait_for(lambda process=process: process.exit_code is not None)
        process.close()


def test_the_engine_dies_with_an_agent_that_is_killed(tmp_path):
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    )
    with agent:
        assert agent.stdout is not None
        pid = int(agent.stdout.readline())
        wait_for(lambda: comm(pid) == "sleep")

        agent.kill()

    wait_for(lambda: not is_running(pid))


def test_an_engine_whose_agent_is_gone_already_does_not_start():
    launcher = [sys.executable, "-I", "-S", pre_exec_script.__file__]

    ended = subprocess.run(
        [*launcher, "1", "0", "", "", "/bin/true"], check=False, capture_output=True
    )

    assert ended.returncode == pre_exec_script.PARENT_GONE


def test_the_engine_gets_its_configuration_in_a_file_only_its_user_reads(start, world, tmp_path):
    process = start(str(world.binary), environment=world.environment)
    wait_for(world.started.exists)
    path = Path(world.engine()["arguments"][-1].removeprefix("f:"))

    modes = oct(path.stat().st_mode & 0o777), oct((tmp_path / "run").stat().st_mode & 0o777)

    assert modes == ("0o600", "0o700")
    assert path == process.launch.config_path


def test_the_engines_environment_is_quiet_and_carries_the_watchdog(start, world, monkeypatch):
    monkeypatch.setenv("RUST_LOG", "trace")
    monkeypatch.setenv("RUST_BACKTRACE", "1")

    start(str(world.binary), environment=world.environment, watchdog_ms=12_000)
    wait_for(world.started.exists)
    seen = world.engine()["environment"]

    assert (seen["RUST_BACKTRACE"], seen["NO_COLOR"]) == ("0", "1")
    assert seen["SCX_TIMEOUT_MS"] == "12000"
    assert "RUST_LOG" not in seen


def test_a_signal_to_the_agents_terminal_does_not_reach_the_engine(start):
    process = start("/bin/sh", "-c", "exec sleep 600")
    wait_for(lambda: comm(process.pid) == "sleep")

    assert os.getsid(process.pid) == process.pid
    assert os.getpgid(process.pid) != os.getpgid(0)


def test_the_engine_inherits_no_descriptor_signal_mask_or_ignored_signal(start, tmp_path):
    secret = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(secret, True)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        process = start("/bin/sh", "-c", "exec sleep 600")
        wait_for(lambda: comm(process.pid) == "sleep")
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        os.close(secret)

    status = dict(
        line.split(":\t") for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
    )
    opened = []
    for one in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # sleep opens and closes its locale
            opened.append(str(one.readlink()))
    assert not int(status["SigBlk"], 16) >> (signal.SIGTERM - 1) & 1
    assert not int(status["SigIgn"], 16) >> (signal.SIGPIPE - 1) & 1
    assert str(tmp_path) not in opened


@pytest.mark.skipif(os.geteuid() != 0, reason="raising a priority needs root")
def test_the_engine_loads_at_the_highest_priority(start):
    process = start("/bin/sh", "-c", "exec sleep 600")
    wait_for(lambda: comm(process.pid) == "sleep")

    assert os.getpriority(os.PRIO_PROCESS, process.pid) == -20


def test_a_talkative_engine_never_waits_and_is_kept_in_bounded_memory(start, world):
    world.script(chatty_bytes=5_000_000, die="the last words")

    process = start(str(world.binary), environment=world.environment)
    wait_for(lambda: process.exit_code is not None)
    wait_for(lambda: process.is_output_complete)

    assert process.errors.endswith("the last words")
    assert len(process.errors) <= 256 * 1024
    assert len(process.log) <= 256 * 1024


def test_closing_does_not_wait_for_a_grandchild_that_holds_the_pipe(start):
    process = start("/bin/sh", "-c", "sleep 600 & echo $!; exit 3")
    wait_for(lambda: process.exit_code == 3)
    wait_for(lambda: process.log != "")
    grandchild = int(process.log)

    process.close()

    assert process.is_output_complete
    with suppress(ProcessLookupError):
        os.kill(grandchild, signal.SIGKILL)


def test_the_pid_is_written_down_while_the_engine_lives(start, tmp_path):
    process = start("/bin/sh", "-c", "exec sleep 600")
    assert own_engine(Roots(run=tmp_path / "run")) == process.pid

    process.kill()
    wait_for(lambda: process.exit_code is not None)
    process.close()

    assert not list((tmp_path / "run").iterdir())


def test_a_program_that_cannot_be_run_says_so_with_its_own_exit_code(start, tmp_path):
    process = start(str(tmp_path / "no-such-engine"))
    wait_for(lambda: process.exit_code is not None)
    wait_for(lambda: process.is_output_complete)

    assert process.exit_code == pre_exec_script.CANNOT_RUN
    assert "No such file" in process.errors


def test_a_runtime_directory_that_cannot_be_made_is_an_engine_error(tmp_path):
    (tmp_path / "run").write_text("a file is in the way")

    with pytest.raises(EngineError, match="cannot start"):
        spawn(Launch(Path("/bin/true"), "[]", tmp_path / "run"))


def test_another_thread_may_not_spawn_the_engine(tmp_path):
    raised: list[BaseException] = []

    def attempt() -> None:
        try:
            spawn(Launch(Path("/bin/true"), "[]", tmp_path / "run"))
        except RuntimeError as error:
            raised.append(error)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()

    assert "main thread" in str(raised[0])


def test_the_launchers_exit_codes_are_told_apart_from_the_engines(world):
    world.script(die="Error: x\n", exit=1)
    ended = subprocess.run(
        [str(world.binary), f"f:{world.node.put('plan.json', json.dumps([]))}"],
        env={**os.environ, **world.environment},
        check=False,
        capture_output=True,
    )

    assert ended.returncode not in (pre_exec_script.CANNOT_RUN, pre_exec_script.PARENT_GONE)


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def children() -> set[int]:
    """Return this process's children, zombies included."""
    told = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return {int(pid) for pid in told.split()}


@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [
        (os, "dup", OSError(errno.EMFILE, "Too many open files")),
        (os, "eventfd", OSError(errno.EMFILE, "Too many open files")),
        (threading.Thread, "start", RuntimeError("can't start new thread")),
    ],
)
def test_a_start_that_fails_half_way_leaves_neither_child_nor_descriptor(
    tmp_path, monkeypatch, owner, name, error
):
    def fail(*_: object, **__: object) -> None:
        raise error

    gc.collect()  # what earlier tests left open is not this one's
    before = children(), open_descriptors()
    arguments = ("-c", "exec sleep 600")

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with pytest.raises(EngineError, match="cannot start /bin/sh"):
            spawn(Launch(Path("/bin/sh"), "[]", tmp_path / "run", arguments=arguments))

    assert (children(), open_descriptors()) == before
    assert not list((tmp_path / "run").iterdir())
