"""``temper train auto`` on a real agent that observes, with real threads, from nothing."""

import json
import resource
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from temper_core import parse_profile
from temper_core.bounded_memory import MOST_BYTES
from temper_plugin_trainer.training.bundles import read_bundle
from tests.core.agent.running_agent import RunningAgent
from tests.trainer.refining.planted import MEASURED
from tests.trainer.refining.test_train_run import FOUND, INVALID, NOTHING, TEMPER, eventually
from tests.trainer.training.roles import build, running

PLANTED = Path(__file__).with_name("planted.py")
WORKLOADS = """
[[workloads]]
name = "noisy"
process = "noisy"
tier = "critical"
cpu_request = "2"

[[workloads]]
name = "asleep"
process = "sleep"
tier = "critical"
"""


class Auto:
    """``temper train auto`` for a pod, in a directory of its own."""

    def __init__(self, agent, directory, benchmark, pids):
        self.agent, self.benchmark, self.pids = agent, benchmark, pids
        self.artifacts = directory / "artifacts"
        self.record = self.artifacts / "noisy"

    def command(self, *options, pod="noisy"):
        given = {
            "--pod": pod,
            "--pid": self.pids[pod],
            "--benchmark": self.benchmark,
            "--metric": MEASURED,
            "--artifacts": self.artifacts,
            "--warm-up": 0,
            "--more-waits": 10_000,
            "--settings": self.agent.path,
        }
        pairs = [str(part) for pair in given.items() for part in pair]
        return [TEMPER, "train", "auto", *pairs, "--rehearse", "--no-trace", *map(str, options)]

    def run(self, *options, **given):
        command = self.command(*options, **given)
        return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def pids(tmp_path_factory):
    """A program that computes without a pause, and one that sleeps."""
    made = build(tmp_path_factory.mktemp("roles"))
    asleep = subprocess.Popen(["sleep", "1h"])
    with running(made, "noisy", "compact-0=spin") as (noisy, _):
        yield {"noisy": noisy, "asleep": asleep.pid}
    asleep.kill()
    asleep.wait()


def pods_of(agent):
    """Return the pods of the last observation."""
    return (agent.observation() or {}).get("pods", [])


@pytest.fixture(scope="module")
def agent(tmp_path_factory, pids):
    """A real agent that observes, with both programs as workloads."""
    running = RunningAgent(tmp_path_factory.mktemp("agent"), settings=WORKLOADS)
    try:
        running.wait_for(lambda: len(pods_of(running)) >= len(pids), "pods")
        yield running
    finally:
        running.stop()


@pytest.fixture
def auto(agent, tmp_path, pids):
    words = [sys.executable, "-I", "-S", PLANTED, agent.socket, "noisy", "compute=yield"]
    return Auto(agent, tmp_path, shlex.join(map(str, words)), pids)


def test_from_nothing_threads_that_compute_are_found_and_yield_because_that_is_better(auto):
    done = auto.run("--seconds", 8, "--trials", 2)

    assert done.returncode == FOUND, done.stderr
    profile = parse_profile((auto.record / "profile.toml").read_text(), "trained")
    (compute,) = [group for group in profile.thread_groups if group.name == "compute"]
    assert compute.treatment == "yield"
    assert [match.comm_prefix for match in compute.match] == ["compact-"]
    assert "compact-#: sync compute" in (auto.record / "REPORT.md").read_text()
    assert read_bundle(auto.record / "bundle.gz").program == "noisy"


def test_it_continues_with_its_bundle_and_journal_after_an_interruption(auto):
    options = ("--seconds", 8, "--trials", 2)
    journal = auto.record / "journal.jsonl"
    begun = subprocess.Popen(auto.command(*options), stderr=subprocess.PIPE, text=True)
    eventually(lambda: journal.exists() and len(journal.read_text().splitlines()) > 5)
    begun.send_signal(signal.SIGINT)
    begun.communicate()
    bundle, before = (auto.record / "bundle.gz").read_bytes(), journal.read_text()

    done = auto.run(*options)

    assert begun.returncode == INVALID
    assert done.returncode == FOUND, done.stderr
    assert "continuing after" in done.stderr
    assert (auto.record / "bundle.gz").read_bytes() == bundle
    assert journal.read_text().startswith(before)


@pytest.mark.parametrize("before", ["false", "mkdir {}"], ids=["first run", "second run"])
def test_a_benchmark_that_fails_until_the_observation_ends_is_one_line(auto, tmp_path, before):
    failing = before.format(tmp_path / "there")
    auto.benchmark = shlex.join(["sh", "-c", f"{failing} && echo 1"])

    done = auto.run("--seconds", 3)

    assert done.returncode > NOTHING
    assert "the benchmark ended with exit code 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (auto.record / "bundle.gz").exists()


def test_a_first_run_of_the_benchmark_ends_before_the_observation_begins(auto):
    auto.benchmark = "echo begin"

    done = auto.run("--seconds", 3)

    assert done.returncode == INVALID
    assert "its last line: begin" in done.stderr
    assert not (auto.record / "bundle.gz").exists()


def test_the_observation_takes_bounded_memory_and_its_benchmark_has_no_such_bound(auto, tmp_path):
    limits, bounds = tmp_path / "limits", set()
    line = f"ulimit -S -d >> {limits}; echo 1"
    auto.benchmark = shlex.join(["sh", "-c", line])

    command, null = auto.command("--seconds", 4, pod="asleep"), subprocess.DEVNULL
    with subprocess.Popen(command, stdout=null, stderr=null) as running:
        while running.poll() is None:
            with suppress(OSError):
                bounds.add(resource.prlimit(running.pid, resource.RLIMIT_DATA)[0])
            time.sleep(0.05)

    assert any(0 < bound <= MOST_BYTES for bound in bounds)
    runs = limits.read_text().split()
    assert len(runs) > 2  # the first, one that begins before the observation, and those during it
    assert set(runs) == {"unlimited"}


def test_a_program_without_a_clear_thread_has_no_improvement(auto):
    numbers = {"metric": MEASURED, "value": 1.0}
    auto.benchmark = shlex.join(["echo", json.dumps(numbers)])

    done = auto.run("--seconds", 5, pod="asleep")

    assert done.returncode == NOTHING
    assert "no improvement found: no thread has a clear class" in done.stdout
    assert "the load was not representative: idle" in done.stderr
    assert auto.agent.get("/trials").json()["trials"] == []
