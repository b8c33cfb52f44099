"""The watchdog of a real agent whose plugin holds the interpreter's lock."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_core.agent.watchdog import GRACE_S
from tests.core.cli.test_command_line import install
from tests.patience import PATIENCE_S

HOLDING = """
import ctypes
import faulthandler
import re
import signal
from pathlib import Path

from temper_core import Instrument, OpenInstrument, hookimpl

def hold_in_c():
    ctypes.PyDLL(None).sleep(3600)

def hold_in_a_pattern():
    re.match(r"(a+)+$", "a" * 60 + "b")

faulthandler.register(signal.SIGUSR1)  # to see the stacks, as many programs do

class Holder(OpenInstrument):
    def section(self, snapshot):
        if (Path(__file__).parent / "hold").exists():
            {hold}()
        return {{}}

@hookimpl
def temper_instruments():
    return [Instrument("holder", lambda _: Holder())]
"""
BOUND_S = 2.0


def settings_of(bound_s=BOUND_S):
    return f"[scheduler]\nloop_deadline_s = {bound_s}\n"


@pytest.fixture
def holding(start, tmp_path, monkeypatch):
    """Return a function that starts an agent, and has its plugin hold the interpreter."""
    path = tmp_path / "path"
    path.mkdir()

    def begin(hold):
        environment = install(path, "holder", HOLDING.format(hold=hold))
        monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
        agent = start(settings=settings_of())
        agent.wait_for(agent.observation, "observation")
        (path / "hold").touch()
        return agent

    return begin


def started_in(agent):
    kept = agent.directory / "events.jsonl"
    return kept.read_text().count('"agent_started"') if kept.exists() else 0


def ends_within(agent, seconds):
    begun = time.monotonic()
    code = agent.process.wait(timeout=PATIENCE_S)
    assert time.monotonic() - begun < seconds
    return code


@pytest.mark.parametrize("hold", ["hold_in_c", "hold_in_a_pattern"])
def test_an_agent_whose_plugin_holds_the_interpreter_ends_and_its_log_has_the_stack(holding, hold):
    agent = holding(hold)

    time.sleep(1.0)  # a look begins every 0.5 s
    agent.process.terminate()  # nothing hears it

    code = ends_within(agent, BOUND_S + GRACE_S + 10.0)
    log = (agent.directory / "log").read_text()
    assert code == -signal.SIGALRM
    assert 'path/holder.py", line' in log
    assert f"in {hold}" in log
    assert "agent_stopped" not in log


WITH_AN_ENGINE = """
import ctypes, sys
from pathlib import Path
from temper_core.agent.watchdog import Watchdog
from temper_core.scheduler.engine_process.command_line import Launch
from temper_core.scheduler.engine_process.process import spawn
arguments = ("-c", "exec sleep 600")
process = spawn(Launch(Path("/bin/sh"), "[]", Path(sys.argv[1]), arguments=arguments))
print(process.pid, flush=True)
Watchdog(1.0).begin()
for _ in range(9):  # a signal ends a sleep of this thread
    ctypes.PyDLL(None).sleep(3600)
"""


def is_running(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


BESIDE_A_FULL_PIPE = """
import ctypes, os, sys
from temper_core.agent.watchdog import Watchdog
from temper_core.logs import configure_logs
import structlog
os.set_blocking(2, False)
try:
    while True:
        os.write(2, bytes(4096))
except BlockingIOError:
    os.set_blocking(2, True)
configure_logs()
structlog.get_logger().warning("nobody_reads_that")
Watchdog(1.0).begin()
print("begun", flush=True)
for _ in range(9):  # a signal ends a sleep of this thread
    ctypes.PyDLL(None).sleep(3600)
"""


def test_a_log_that_nobody_reads_does_not_keep_the_process():
    command = [sys.executable, "-c", BESIDE_A_FULL_PIPE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"begun\n"
            assert process.wait(timeout=PATIENCE_S) == -signal.SIGALRM
        finally:
            process.kill()


NO_TIMERS = ("prlimit", "--sigpending=0")
"""Other processes of the user have all its timers: timer_create(2) fails."""


@pytest.mark.parametrize("before", [(), NO_TIMERS])
def test_the_engine_dies_with_an_agent_that_its_watchdog_ends(tmp_path, before):
    command = [*before, sys.executable, "-c", WITH_AN_ENGINE, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as agent:
        pid = int(agent.stdout.readline())
        was_running = is_running(pid)
        code = agent.wait(timeout=PATIENCE_S)

    deadline = time.monotonic() + PATIENCE_S
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert was_running
    assert code == -signal.SIGALRM
    assert not is_running(pid)


def test_the_next_agent_records_that_the_one_before_did_not_stop_in_order(start):
    reasons = []
    for ended_by in (signal.SIGKILL, signal.SIGTERM, signal.SIGTERM):
        agent = start(settings=settings_of(60.0))
        events = agent.wait_for(lambda agent=agent: agent.get("/events").json(), "events")["events"]
        reasons.append([e["reason"] for e in events if e["kind"] == "agent_started"][-1])
        agent.wait_for(lambda agent=agent: started_in(agent) == len(reasons), "kept start")
        agent.stop(ended_by)
        agent.socket.unlink(missing_ok=True)

    assert reasons[0] == reasons[2] == ""
    assert "its watchdog ended it" in reasons[1]


def test_an_agent_that_was_stopped_for_longer_than_the_bound_goes_on(start):
    agent = start(settings=settings_of())
    agent.wait_for(agent.observation, "observation")

    agent.process.send_signal(signal.SIGSTOP)
    time.sleep(2 * BOUND_S)
    agent.process.send_signal(signal.SIGCONT)
    agent.wait_for(lambda: "loop_was_late" in (agent.directory / "log").read_text(), "warning")
    time.sleep(GRACE_S)  # the second expiry does not come

    assert agent.process.poll() is None
    assert "most recent call first" not in (agent.directory / "log").read_text()
    assert agent.get("/healthz").status_code == 200
    assert agent.stop() == 0


def test_an_agent_that_sleeps_for_longer_than_the_bound_goes_on(start):
    agent = start(settings=settings_of(), looks=False)
    agent.wait_for(agent.observation, "observation")

    time.sleep(BOUND_S + GRACE_S + 2.0)

    assert agent.process.poll() is None
    assert "loop_was_late" not in (agent.directory / "log").read_text()


@pytest.mark.parametrize("is_abstract", [False, True])
def test_the_service_manager_hears_of_the_start_each_turn_and_the_end(
    start, tmp_path, monkeypatch, is_abstract
):
    name = f"{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}" if is_abstract else name)
        manager.settimeout(PATIENCE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if is_abstract else name)
        agent = start()
        heard = [manager.recv(100) for _ in range(6)]
        agent.wait_for(agent.observation, "observation")
        agent.process.terminate()
        while heard[-1] != b"STOPPING=1":
            heard.append(manager.recv(100))

    assert heard.count(b"READY=1") == 1
    assert b"WATCHDOG=1" in heard[heard.index(b"READY=1") :]
    assert set(heard) == {b"READY=1", b"WATCHDOG=1", b"STOPPING=1"}


WITHOUT_TIMERS = """
import signal, time
from temper_core.agent.watchdog import Watchdog
watchdog = Watchdog(0.1)
watchdog.begin()
for _ in range(3):
    time.sleep(0.3)  # longer than the bound, and shorter than the bound and GRACE_S
    watchdog.turned()
left_s = signal.getitimer(signal.ITIMER_REAL)[0]
watchdog.end()
print(left_s > 1.0, signal.getitimer(signal.ITIMER_REAL)[0])
"""


def test_a_watchdog_without_a_timer_of_its_own_counts_by_setitimer_and_says_so():
    command = [*NO_TIMERS, sys.executable, "-c", WITHOUT_TIMERS]

    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)

    assert ran.stdout.splitlines()[-1] == "True 0.0"
    assert "watchdog_counts_by_setitimer" in ran.stdout + ran.stderr
