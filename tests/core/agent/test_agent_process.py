"""The agent as a user runs it: a real process on this machine's real threads."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.core.agent.running_agent import TEMPER
from tests.core.cli.test_command_line import install
from tests.patience import PATIENCE_S
from tests.signals import FROM_A_TERMINAL


def test_the_busiest_threads_of_this_machine_are_shown_with_their_workload(start, busy_process):
    rule = '[[workloads]]\nname = "spin"\nprocess = "sh"\ntier = "low"\n'
    agent = start(settings=rule)

    def seen():
        rows = (agent.observation() or {"threads": []})["threads"]
        ours = [row for row in rows if row["tid"] == busy_process.pid]
        return next((row for row in ours if row["cpu_used"] > 0.0), None)

    row = agent.wait_for(seen, "busy thread")

    assert (row["comm"], row["pod"], row["tier"]) == ("sh", "spin", "low")
    assert row["cpu_used"] <= 1.1  # how little depends on who else runs here


def test_without_sched_ext_it_only_observes_and_says_why(start):
    if Path("/sys/kernel/sched_ext").exists():
        pytest.skip("this kernel has sched_ext")
    agent = start(enforces=True)

    observed = agent.wait_for(agent.observation, "observation")

    assert observed["mode"] == "observe_only"
    assert observed["reason"] == "no_sched_ext"
    assert observed["schema_version"] == 1
    assert agent.get("/healthz").status_code == 200
    assert agent.get("/config").status_code == 404


@pytest.mark.parametrize(("enforces", "why"), [(True, "no sched_ext"), (False, "enforce is false")])
def test_where_no_engine_can_run_no_thread_is_steered_and_the_reason_is_told(start, enforces, why):
    if Path("/sys/kernel/sched_ext").exists():
        pytest.skip("this kernel has sched_ext")
    agent = start(enforces=enforces)

    steering = agent.wait_for(agent.observation, "observation")["steering"]

    assert steering["mode"] == "static"
    assert why in steering["reason"]
    assert steering["threads"] == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopping_leaves_nothing_behind(start, tmp_path, number):
    agent = start()
    agent.wait_for(agent.observation, "observation")

    code = agent.stop(number)

    assert code == 0
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    # Events and the history of demand are kept over a restart.
    assert left == ["agent.toml", "demand.sqlite", "events.jsonl", "log"]
    assert agent.events()[-1] == "agent_stopped"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_agent_that_a_shell_put_into_the_background_stops_in_order(start, number):
    agent = start(ignored=FROM_A_TERMINAL)
    agent.wait_for(agent.observation, "observation")

    # A hang-up ends nothing that nohup started; SIGINT is an order to this process alone.
    agent.process.send_signal(signal.SIGHUP)
    code = agent.stop(number)

    assert code == 0
    assert agent.events()[-1] == "agent_stopped"


def test_an_agent_learns_how_an_engine_ended_although_it_was_started_without_sigchld(start):
    agent = start(ignored=[signal.SIGCHLD])
    agent.wait_for(agent.observation, "observation")

    status = Path(f"/proc/{agent.process.pid}/status").read_text()
    (ignored,) = re.findall(r"SigIgn:\s*(\w+)", status)

    assert not int(ignored, 16) & 1 << signal.SIGCHLD - 1


def test_the_plugins_contribute_to_a_running_agent(start):
    agent = start()
    agent.wait_for(agent.observation, "observation")

    plugins = {plugin["name"]: plugin for plugin in agent.get("/plugins").json()["plugins"]}
    metrics = agent.get("/metrics").text

    assert plugins["linter"]["state"] == "active"
    assert 'temper_lint_violation{invariant="smt_collision"} 0.0' in metrics
    assert "temper_lint_violation_age_seconds" in metrics
    assert agent.get("/violations").status_code == 200


def test_every_family_that_a_full_node_exports_is_in_the_page_of_metrics(start):
    allowed = '[plugin_host]\nallow = ["linter", "builtin-profiles"]\n'
    agent = start(settings=allowed)
    agent.wait_for(agent.observation, "observation")

    exported = re.findall(r"^# TYPE (\S+)", agent.get("/metrics").text, re.MULTILINE)

    page = (Path(__file__).parents[3] / "docs/metrics.md").read_text()
    assert "temper_lint_violation_age_seconds" in exported
    assert set(exported) <= set(re.findall(r"^\| `(\w+)` ", page, re.MULTILINE))


UNDECLARING = """
from temper_core import Exporter, Instrument, Metric, MetricFamily, MetricSample, OpenInstrument
from temper_core import hookimpl

BEANS = MetricFamily("temper_acme_beans", "Beans.")

class Cafe(OpenInstrument):
    def metrics(self):
        milk = Metric("temper_acme_milk", "Milk.", [MetricSample(1)])
        return [BEANS.metric([MetricSample(3)]), milk]

@hookimpl
def temper_instruments():
    return [Instrument("cafe", lambda _: Cafe())]

@hookimpl
def temper_metrics():
    return [BEANS]
"""


def test_a_family_that_a_plugin_did_not_declare_is_exported_and_named_in_observe(
    start, tmp_path, monkeypatch
):
    path = tmp_path / "path"
    path.mkdir()
    monkeypatch.setenv("PYTHONPATH", install(path, "acme", UNDECLARING)["PYTHONPATH"])
    agent = start()
    agent.wait_for(agent.observation, "observation")

    metrics = agent.get("/metrics").text

    named = "plugin acme: its metric temper_acme_milk is not declared by temper_metrics"
    assert "temper_acme_beans 3.0" in metrics
    assert "temper_acme_milk 1.0" in metrics
    agent.wait_for(lambda: named in agent.observation()["defects"], "defect")
    assert not [line for line in agent.observation()["defects"] if "temper_acme_beans" in line]


@pytest.mark.parametrize("needless", ["httpx2", "prometheus_client", "rich", "yaml"])
def test_an_agent_takes_no_memory_for_what_it_does_not_need(start, monkeypatch, needless):
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    agent = start()
    agent.wait_for(agent.observation, "observation")
    agent.wait_for(lambda: agent.get("/metrics").text, "metrics")

    agent.stop()

    imported = re.findall(r"\| +([\w.]+)$", (agent.directory / "log").read_text(), re.MULTILINE)
    assert "temper_core.metrics.scraper" in imported
    assert not [each for each in imported if each.startswith(f"{needless}.")]


def test_safe_mode_is_asked_for_and_survives_a_restart(start):
    agent = start()
    agent.wait_for(agent.observation, "observation")

    asked = agent.client.put(
        "/safe-mode", json={"requested": True, "requester": "alice", "reason": "drill"}
    )
    agent.stop(signal.SIGKILL)
    agent.socket.unlink()
    again = start()
    requests = again.wait_for(lambda: again.get("/safe-mode").json()["requests"], "request")

    assert asked.status_code == 200
    assert requests["alice"]["reason"] == "drill"


def test_a_second_agent_on_the_same_socket_is_refused(start, tmp_path):
    agent = start()
    agent.wait_for(agent.observation, "observation")

    settings = tmp_path / "second.toml"
    settings.write_text(
        f'run_directory = "{agent.directory}/run"\nstate_directory = "{tmp_path}/other"\n'
    )

    second = subprocess.run(
        [TEMPER, "agent", "--observe-only", "--settings", str(settings)],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert second.returncode == 3
    [refusal] = [line for line in second.stderr.splitlines() if line.startswith("temper: ")]
    assert f"another agent answers on {agent.socket}; stop it, or start" in refusal
    assert "a state_directory, a run_directory" in refusal
    assert "Traceback" not in second.stderr
    assert agent.get("/healthz").status_code == 200


def test_an_agent_that_may_open_too_few_files_ends_at_once(tmp_path):
    settings = tmp_path / "agent.toml"
    settings.write_text("")
    few = ["sh", "-c", 'ulimit -n 32; exec "$0" agent --settings "$1"', TEMPER, str(settings)]

    ended = subprocess.run(few, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert ended.returncode == 3
    assert ended.stderr.startswith("temper: only 32 files may be open at a time")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("listen", "problem"),
    [("nonsense", "must be an address and a port such as"), ("", "listen and socket are both")],
)
def test_an_address_of_the_command_line_is_judged_as_that_of_the_settings(
    tmp_path, listen, problem
):
    path = tmp_path / "agent.toml"
    path.write_text("[server]\nsocket = ''\n")

    done = subprocess.run(
        [TEMPER, "agent", "--settings", str(path), "--listen", listen],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode == 2
    assert f"temper: --listen: {problem}" in done.stderr


@pytest.mark.parametrize(
    ("settings", "code", "word"),
    [
        ('[pods]\nsource = "kubelet"\n', 2, "there are: file, kubernetes, local"),
        ('[server]\nlisten = "nowhere:x"\n', 2, "nowhere:x"),
        ("[observe]\nperiod_s = 0\n", 2, "observe.period_s"),
    ],
)
def test_settings_that_cannot_work_end_the_agent_at_once(tmp_path, settings, code, word):
    path = tmp_path / "agent.toml"
    own = f'run_directory = "{tmp_path}/run"\nstate_directory = "{tmp_path}"\n'
    path.write_text(own + settings)

    done = subprocess.run(
        [TEMPER, "agent", "--observe-only", "--settings", str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "HOME": str(tmp_path)},
    )

    assert done.returncode == code
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_that_others_may_write_are_told(start, tmp_path):
    (tmp_path / "agent.toml").touch()
    (tmp_path / "agent.toml").chmod(0o666)  # it is written anew with the same mode
    agent = start()
    agent.wait_for(agent.observation, "observation")

    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]

    told = [line["path"] for line in lines if line["event"] == "file_writable_by_others"]
    assert told == [str(tmp_path / "agent.toml")]
