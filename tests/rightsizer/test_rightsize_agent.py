"""``temper rightsize`` on a real agent that watches two real programs of the same average."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest

from tests.core.cli.pseudo_terminal import written_on
from tests.patience import PATIENCE_S

TEMPER = str(Path(sys.executable).with_name("temper"))
BETWEEN = "---\n"
"""The line between two documents of YAML."""
NAME = "import pathlib; pathlib.Path('/proc/self/comm').write_text('{name}')\n"
# Other work of this machine must not slow the hot thread down: what it uses is what is judged.
HOT = """
import os, time
if os.geteuid() == 0: os.nice(-15)
end = time.monotonic() + 120
while time.monotonic() < end: pass
time.sleep(3600)
"""
LAZY = """
import threading, time
def be_lazy():
    while True:
        end = time.thread_time() + 0.02
        while time.thread_time() < end: pass
        time.sleep(0.065)
for _ in range(3): threading.Thread(target=be_lazy, daemon=True).start()
be_lazy()
"""
# Two threads that share one CPU: one of them waits at any time.
QUEUED = """
import os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.nice(10)
first = os.getpid()
is_second = os.fork() == 0
end = time.monotonic() + 120
while time.monotonic() < end and not (is_second and os.getppid() != first): pass
"""
SETTINGS = """
run_directory = "{folder}/run"
state_directory = "{folder}/state"
[server]
listen = ""
[scheduler]
enforce = false
[observe]
period_s = 1.0
budget_cpu_ratio = 1.0
[[workloads]]
name = "busy"
process = "rs-hot"
tier = "normal"
cpu_request = "500m"
[[workloads]]
name = "easy"
process = "rs-lazy"
tier = "normal"
cpu_request = "2"
[[workloads]]
name = "queued"
process = "rs-queued"
tier = "normal"
cpu_request = "2"
"""


def start_agent(settings):
    with (settings.parent / "log").open("a") as log:
        return subprocess.Popen([TEMPER, "agent", "--settings", str(settings)], stderr=log)


def end_agent(settings, agent):
    agent.send_signal(signal.SIGTERM)
    status = agent.wait(PATIENCE_S)
    assert status == 0, (settings.parent / "log").read_text()


@pytest.fixture(scope="module")
def programs():
    """Run programs with one hot thread, with four lazy ones, and with two on one CPU."""
    running = [
        subprocess.Popen([sys.executable, "-c", NAME.format(name=name) + work])
        for name, work in (("rs-hot", HOT), ("rs-lazy", LAZY), ("rs-queued", QUEUED))
    ]
    yield
    for program in running:
        program.kill()
        program.wait()


@pytest.fixture(scope="module")
def settings(tmp_path_factory, programs):  # noqa: ARG001 - they run first
    """Return the settings of a running agent beside both programs."""
    folder = tmp_path_factory.mktemp("agent")
    path = folder / "agent.toml"
    path.write_text(SETTINGS.format(folder=folder))
    agent = start_agent(path)
    yield path
    end_agent(path, agent)


def rightsize(settings, *options):
    command = [TEMPER, "rightsize", "--settings", str(settings), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def learned(settings):
    """Return the advice by pod once both programs were seen for some windows."""
    return learned_for(settings, seconds=8)


def learned_for(settings, seconds):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        done = rightsize(settings, "--output", "json")
        containers = json.loads(done.stdout)["containers"] if done.returncode == 0 else []
        pods = {container["pod"]: container for container in containers}
        if {"busy", "easy", "queued"} <= pods.keys() and pods["busy"]["learned_s"] >= seconds:
            return pods
        time.sleep(0.5)
    raise AssertionError(done.stdout + done.stderr)


def test_a_hot_thread_gets_a_core_and_lazy_threads_share(learned):
    if os.geteuid() != 0:
        pytest.skip("without root the threads cannot be protected from other work")
    busy, easy = learned["busy"], learned["easy"]

    assert (busy["verdict"], busy["hot_threads"]) == ("exclusive", ["rs-hot"])
    assert busy["recommended"]["cpu_request_millis"] >= 1000
    assert easy["used"]["cpu_mean"] > 0
    assert (easy["verdict"], easy["hot_threads"]) == ("shared", [])
    assert easy["recommended"]["cpu_request_millis"] < 2000


@pytest.mark.usefixtures("learned")
@pytest.mark.parametrize("width", [80, 160])
def test_a_report_fits_a_terminal(settings, width):
    command = [TEMPER, "rightsize", "--settings", str(settings)]

    lines = written_on(command, "requested in all", width)

    report = [line for line in lines if not line.startswith("note: ")]
    assert max(map(len, report)) <= width
    assert {"* busy", "* easy"} <= {line[:6] for line in report}
    words = " ".join(report).split()
    assert {"verdict", "request", "limit", "confidence", "P95"} <= {*words}


def test_threads_that_share_a_cpu_wait_for_it(learned):
    queued = learned["queued"]

    (group,) = queued["used"]["run_queue"]["groups"]
    assert group["name"] == "rs-queued"
    assert group["waiting"] > 0.5, "one of two threads waits at any time"
    assert any(
        reason.startswith("threads rs-queued used") and "waited in the run queue" in reason
        for reason in queued["reasons"]
    )


@pytest.mark.usefixtures("learned")
def test_the_table_names_the_change_and_the_reason(settings):
    done = rightsize(settings, "busy", "--fail-on-change")

    assert done.returncode == 1, done.stderr
    assert "exclusive (rs-hot)" in done.stdout
    assert "0.5 -> " in done.stdout
    assert "1 hot thread uses" in done.stdout
    assert "low" in done.stdout
    assert "easy" not in done.stdout


@pytest.mark.usefixtures("learned")
def test_the_choices_of_the_command_reach_the_agent(settings):
    done = rightsize(settings, "busy", "--percentile", "0.99", "--margin", "2", "--output", "json")

    document = json.loads(done.stdout)
    assert (document["options"]["percentile"], document["options"]["margin"]) == (0.99, 2)
    assert "P99" in document["containers"][0]["reasons"][0]


@pytest.mark.usefixtures("learned")
def test_the_suggested_profile_is_one_that_temper_takes(settings, tmp_path):
    table, written = rightsize(settings, "busy"), rightsize(settings, "busy", "--output", "profile")
    path = tmp_path / "busy.toml"
    path.write_text(written.stdout)
    linted = subprocess.run(
        [TEMPER, "profiles", "lint", str(path)], capture_output=True, text=True, check=False
    )

    assert "suggestion: only the tiers critical and high" in table.stdout
    assert 'comm_prefix = "rs-hot"' in written.stdout
    assert linted.returncode == 1, linted.stdout  # without evidence there are warnings
    assert "error" not in linted.stdout


@pytest.mark.usefixtures("learned")
def test_a_watched_report_is_asked_for_again(settings):
    command = [TEMPER, "rightsize", "-w", "--interval", "0.1", "-o", "yaml"]
    asking = subprocess.Popen(
        [*command, "--settings", str(settings)], stdout=subprocess.PIPE, text=True
    )
    try:
        documents = list(islice(filter(BETWEEN.__eq__, asking.stdout), 2))
    finally:
        asking.send_signal(signal.SIGINT)
        asking.stdout.close()

    assert documents == [BETWEEN, BETWEEN]
    assert asking.wait(PATIENCE_S) in (0, 130)


@pytest.mark.usefixtures("learned")
def test_csv_has_a_row_for_each_container(settings):
    rows = list(csv.DictReader(io.StringIO(rightsize(settings, "--output", "csv").stdout)))

    requests = {row["pod"]: row["cpu_request_millis"] for row in rows}
    assert (requests["busy"], requests["easy"]) == ("500", "2000")


@pytest.mark.usefixtures("learned")
def test_markdown_is_a_table(settings):
    lines = rightsize(settings, "--output", "markdown").stdout.splitlines()

    assert lines[1].count("---") == lines[0].count("|") - 1
    assert any("busy" in line for line in lines[2:])


@pytest.mark.usefixtures("learned")
def test_prices_make_savings_of_what_is_requested(settings):
    prices = ("--core-price", "0.05", "--gib-price", "0.01")

    table = rightsize(settings, "easy", *prices).stdout
    document = json.loads(rightsize(settings, "easy", *prices, "--output", "json").stdout)

    assert "Identified savings, an estimate: " in table
    assert (document["prices"]["core_hour"], document["prices"]["gib_hour"]) == (0.05, 0.01)
    (easy,) = document["containers"]
    freed = (2000 - easy["recommended"]["cpu_request_millis"]) / 1000
    assert document["identified_savings_per_month"] == pytest.approx(freed * 0.05 * 730, abs=0.01)


@pytest.mark.usefixtures("learned")
def test_a_page_has_plots_of_all_programs(settings):
    page = rightsize(settings, "--output", "html").stdout

    assert page.startswith("<!doctype html>")
    assert page.count("<section>") == 3
    assert page.count("busiest thread</text>") >= 1


@pytest.mark.usefixtures("learned")
def test_a_pull_request_names_what_should_change(settings):
    text = rightsize(settings, "busy", "--output", "pr").stdout

    assert text.startswith("Rightsize busy\n\n1 containers should change.")
    assert "hot thread uses" in text


@pytest.mark.usefixtures("learned")
def test_an_unknown_pod_is_one_line(settings):
    done = rightsize(settings, "nothing/here")

    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "no demand of nothing/here is known; known are: " in done.stderr


@pytest.mark.usefixtures("learned")
def test_a_mistyped_pod_gets_the_one_that_was_meant(settings):
    assert rightsize(settings, "bsuy").stderr.endswith("; did you mean 'busy'?\n")


def test_without_an_agent_there_is_one_line(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(SETTINGS.format(folder=tmp_path))

    done = rightsize(path)

    assert done.returncode == 3
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("programs")
def test_the_history_survives_the_agent(tmp_path):
    """The interval that is not over is written at the end, and the next agent reads it."""
    path = tmp_path / "agent.toml"
    path.write_text(SETTINGS.format(folder=tmp_path))
    first = start_agent(path)
    before = learned_for(path, seconds=4)["busy"]["learned_s"]
    end_agent(path, first)

    second = start_agent(path)
    after = learned_for(path, seconds=1)["busy"]["learned_s"]
    end_agent(path, second)

    assert after >= before
