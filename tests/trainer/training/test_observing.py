"""``temper train observe`` on real programs."""

import gzip
import json
import os
import resource
import shlex
import signal
import socketserver
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from click.testing import CliRunner

from temper_core import DocumentError, InputError, MachineError
from temper_core.bounded_memory import MOST_BYTES
from temper_plugin_trainer.commands.train import command
from temper_plugin_trainer.training.bundles import read_bundle
from tests.signals import interrupting

SCRIPT = """
import time
while True:
    ends = time.thread_time() + 0.001
    while time.thread_time() < ends: pass
    time.sleep(0.008)
"""
BUSY = shlex.join([sys.executable, "-c", SCRIPT])
IDLE = "sleep 300"
TEMPER = Path(sys.executable).with_name("temper")


def observe(*arguments, output):
    words = ["observe", *map(str, arguments), "-o", str(output)]
    return CliRunner().invoke(command, words)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bundle.gz"


def descendants():
    """Return the processes that this one started, and that have not ended."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def test_a_busy_program_is_observed_with_its_sleeps(path):
    result = observe("--command", BUSY, "--seconds", 4, "--warm-up", 1, "--no-agent", output=path)

    bundle = read_bundle(path)
    (thread,) = bundle.threads
    assert result.exit_code == 0, result.stderr
    assert "the load was representative" in result.stderr
    assert thread.sleeps > 50
    assert thread.run_s / thread.sleeps == pytest.approx(0.001, rel=0.5)
    assert sum(thread.sleeps_in.values()) > 0
    assert thread.run_s == pytest.approx(sum(each.run_s for each in bundle.intervals), abs=0.05)
    assert not descendants()


def test_an_idle_program_is_not_representative_and_its_bundle_is_written(path):
    result = observe("--command", IDLE, "--seconds", 3.2, "--no-agent", output=path)

    assert result.exit_code == 1
    assert "not representative: idle" in result.stderr
    assert read_bundle(path).problems[0].startswith("idle")
    assert not descendants()


def test_a_program_that_ends_early_is_told(path):
    result = observe("--command", "sleep 1", "--seconds", 60, "--no-agent", output=path)

    assert result.exit_code == 1
    assert "the program ended after" in result.stderr


def test_an_interruption_ends_the_observation_and_the_program(path):
    with interrupting(signal.SIGINT):
        result = observe("--command", IDLE, "--seconds", 600, "--no-agent", output=path)

    assert result.exit_code == 1
    assert read_bundle(path).problems[0].startswith("interrupted after")
    assert not descendants()


def test_an_interrupted_warm_up_leaves_no_file(path):
    with interrupting(signal.SIGINT):
        result = observe("--command", IDLE, "--warm-up", 600, "--no-agent", output=path)

    assert isinstance(result.exception, InputError)
    assert not path.exists()
    assert not descendants()


def test_a_program_inherits_no_signal_that_is_held_back_or_ignored_here(path):
    status = path.with_name("status")
    line = f"sh -c 'cat /proc/self/status > {status}; sleep 300'"

    observe("--command", line, "--seconds", 1, "--no-agent", output=path)

    masks = dict(line.split(":\t") for line in status.read_text().splitlines() if ":\t" in line)
    pipe = 1 << signal.SIGPIPE - 1
    assert int(masks["SigBlk"], 16) == 0
    assert int(masks["SigIgn"], 16) & pipe == 0


def test_an_observation_takes_bounded_memory_and_its_program_has_no_such_bound(path):
    limits, during = path.with_name("limits"), []
    line = f"sh -c 'ulimit -d > {limits}; sleep 300'"
    before = resource.getrlimit(resource.RLIMIT_DATA)
    looking = threading.Timer(0.5, lambda: during.append(resource.getrlimit(resource.RLIMIT_DATA)))
    looking.start()

    observe("--command", line, "--seconds", 2, "--no-agent", output=path)
    looking.join()

    assert 0 < during[0][0] <= MOST_BYTES
    assert limits.read_text() == "unlimited\n"
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_program_that_ignores_its_end_is_killed(path):
    stubborn = "sh -c \"trap '' TERM; while :; do sleep 0.05; done\""

    observe("--command", stubborn, "--seconds", 1, "--no-agent", output=path)

    assert not descendants()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--command", "no-such-program"], "--command no-such-program: No such file"),
        (["--command", "sh -c 'x"], "No closing quotation"),
        (["--command", ""], "names no program"),
        (["--pid", 2**22], "there is no such process"),
    ],
)
def test_a_program_that_cannot_be_observed_is_one_line_and_leaves_no_file(arguments, why, path):
    result = observe(*arguments, "--no-agent", output=path)

    assert isinstance(result.exception, InputError)
    assert why in str(result.exception)
    assert "\n" not in str(result.exception)
    assert not path.exists()


@pytest.mark.parametrize("arguments", [[], ["--pid", 1, "--pod", "a/b"]])
def test_what_is_observed_is_named_in_one_way(arguments, path):
    result = observe(*arguments, output=path)

    assert result.exit_code == 2
    assert "--pid, --pod and --command" in result.stderr


def test_a_file_that_is_there_is_kept(path):
    path.write_text("mine")

    result = observe("--command", IDLE, output=path)

    assert isinstance(result.exception, InputError)
    assert path.read_text() == "mine"


def test_a_program_that_is_gone_at_once_leaves_no_file(path):
    result = observe("--command", "true", "--warm-up", 1, "--no-agent", output=path)

    assert isinstance(result.exception, MachineError)
    assert not path.exists()


def test_a_bundle_goes_to_standard_output():
    words = ["train", "observe", "--command", IDLE, "--seconds", "1", "--no-agent", "-o", "-"]
    done = subprocess.run([TEMPER, *words], check=False, capture_output=True)

    assert done.returncode == 1
    assert json.loads(gzip.decompress(done.stdout))["threads"]


class Agent(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers as an agent whose windows show that an interrupt woke the program's thread."""

    daemon_threads = True

    def __init__(self, path):
        super().__init__(str(path), Handler)
        self.asked = []
        self.tid = 1
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def window(self):
        edges = [
            {"waker": party(0, ""), "wakee": party(self.tid, "python"), "wakes": 7},
            {"waker": party(1, "init"), "wakee": party(2, "other"), "wakes": 9},
        ]
        times = {"at": time.time(), "length_s": 0.5, "every_s": 1.0, "switches_per_s": 100.0}
        return {**times, "edges": edges, "blockings": [], "waits": [], "lost": 0}


def party(tid, comm):
    return {"tid": tid, "comm": comm, "process": "", "pod": "", "layer": ""}


class Handler(BaseHTTPRequestHandler):
    server_version = "temper/0.1.0"

    def do_GET(self):
        self.server.asked.append((self.command, self.path))
        answer = {"at": "2026-03-02T08:15:04Z", "mode": "enforcing", "generation": 3, "engine": "x"}
        if self.path == "/wakes":
            answer = {"reason": "", "window": self.server.window()}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_GET  # noqa: N815 - the server's names

    def address_string(self):
        return "socket"

    def log_message(self, *_):
        pass


def test_an_agent_adds_its_state_and_the_wake_ups_of_the_program(path, tmp_path):
    agent, settings = Agent(tmp_path / "agent.sock"), tmp_path / "agent.toml"
    settings.write_text(f'[server]\nlisten = ""\nsocket = "{tmp_path}/agent.sock"\n')
    try:
        agent.tid = os.posix_spawnp("sh", ["sh", "-c", f"exec {BUSY} >/dev/null"], os.environ)
        result = observe("--pid", agent.tid, "--seconds", 4, "--settings", settings, output=path)
    finally:
        os.kill(agent.tid, signal.SIGKILL)
        os.waitpid(agent.tid, 0)
        agent.shutdown()
        agent.server_close()

    bundle = read_bundle(path)
    (edge,) = bundle.agent.wakes.edges
    assert result.exit_code == 0, result.stderr
    assert [look.generation for look in bundle.agent.looks] == [3, 3]
    assert (edge.waker, edge.wakee, edge.wakee_inside) == (0, agent.tid, True)
    assert edge.wakes == 7 * bundle.agent.wakes.windows > 0
    assert agent.asked.count(("PUT", "/wakes")) == 1


def test_an_agent_that_does_not_answer_is_told(path, tmp_path):
    settings = tmp_path / "agent.toml"
    settings.write_text(f'[server]\nlisten = ""\nsocket = "{tmp_path}/none.sock"\n')

    result = observe("--command", IDLE, "--seconds", 1, "--settings", settings, output=path)

    assert "without an agent: no agent answers" in result.stderr
    assert read_bundle(path).agent.reason.startswith("no agent answers")


def test_settings_that_cannot_be_read_leave_no_file(path, tmp_path):
    result = observe("--command", IDLE, "--settings", tmp_path / "none.toml", output=path)

    assert isinstance(result.exception, DocumentError)
    assert not path.exists()
