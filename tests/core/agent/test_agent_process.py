"""The agent as a user runs it: a real process on this machine's real threads."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.core.test_command_line import install
from tests.patience import PATIENCE_S
from tests.signals import FROM_A_TERMINAL, ignoring

TEMPER = str(Path(sys.executable).with_name("temper"))


class RunningAgent:
    """An agent in a directory of its own; with *looks* false it has to hear of everything.


    It observes only, unless *enforces* has it run an engine where the kernel can.
    """

    def __init__(self, directory, *options, settings="", looks=True, ignored=(), enforces=False):
        self.directory = directory
        self.path = directory / "agent.toml"
        period_s, poll_s, file_poll_s = (0.5, 0.2, 1.0) if looks else (60, 3600, 3600)
        self.path.write_text(
            f'run_directory = "{directory}/run"\nstate_directory = "{directory}"\n'
            f'[server]\nlisten = "127.0.0.1:0"\n[safe_mode]\npoll_s = {file_poll_s}\n'
            f"[observe]\nperiod_s = {period_s}\n[pods]\npoll_s = {poll_s}\n{settings}"
        )
        options = options if enforces else ("--observe-only", *options)
        command = [TEMPER, "agent", "--settings", str(self.path), *options]
        self.log = (directory / "log").open("w")
        with ignoring(ignored):
            self.process = subprocess.Popen(command, stderr=self.log)
        self.socket = directory / "run" / "agent.sock"
        transport = httpx2.HTTPTransport(uds=str(self.socket))
        self.client = httpx2.Client(
            transport=transport, base_url="http://agent", timeout=PATIENCE_S
        )

    def get(self, path):
        return self.client.get(path)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, (self.directory / "log").read_text()
            # httpx2 leaks its socket where there is nothing to connect to.
            if self.socket.exists() and (found := condition()):
                return found
            time.sleep(0.1)
        raise AssertionError(f"no {what}: {(self.directory / 'log').read_text()}")

    def observation(self):
        answer = self.get("/observe")
        return answer.json() if answer.status_code == 200 else None

    def stop(self, number=signal.SIGTERM):
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(timeout=PATIENCE_S)
        finally:
            self.process.kill()  # one that hangs outlives no test
            self.process.wait()
            self.log.close()

    def events(self):
        lines = (self.directory / "log").read_text().splitlines()
        return [json.loads(line)["event"] for line in lines]


@pytest.fixture
def start(tmp_path):
    with ExitStack() as running:

        def launch(*options, **given):
            agent = RunningAgent(tmp_path, *options, **given)
            running.callback(agent.stop)
            return agent

        yield launch


@pytest.fixture
def busy_process():
    spinner = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    yield spinner
    spinner.kill()
    spinner.wait()


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_leaves_nothing_behind(start, tmp_path, number):
    agent = start()
    agent.wait_for(agent.observation, "observation")

    code = agent.stop(number)

    assert code == 0
    left = sorted(path.name for path in tmp_path.rglob("*"))
    assert left == ["agent.toml", "events.jsonl", "log"]
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


def test_a_pod_list_is_followed_and_explained(start, tmp_path):
    pods = tmp_path / "pods.json"
    pods.write_text(json.dumps({"kind": "PodList", "items": [_pod("web", 1_000_000)]}))
    agent = start("--pods", str(pods))

    first = agent.wait_for(lambda: _explained(agent, "shop/web"), "explanation")
    pods.write_text(json.dumps({"kind": "PodList", "items": [_pod("web", -5)]}))
    agent.wait_for(lambda: _explained(agent, "shop/web").get("tier") == "low", "change of tier")

    assert first["tier"] == "critical"
    assert agent.get("/explain?pod=shop/nobody").status_code == 404


def test_profiles_are_followed_and_their_failures_counted(start, tmp_path):
    profile, pods = tmp_path / "profiles" / "web.toml", tmp_path / "pods.json"
    profile.parent.mkdir()
    named = _pod("web", -5)
    named["metadata"]["annotations"] = {"temper.codes/workload-profile": "web"}
    pods.write_text(json.dumps({"kind": "PodList", "items": [named]}))
    agent = start("--pods", str(pods), settings=f'[profiles]\ndirectory = "{profile.parent}"\n')
    first = agent.wait_for(lambda: _explained(agent, "shop/web"), "explanation")

    profile.write_text('schema_version = 1\nid = "web"\n[[thread_groups]]\nname = "rest"\n')
    agent.wait_for(lambda: _explained(agent, "shop/web").get("profile"), "profile")
    profile.write_text("id = ")
    failed = 'temper_profile_load_failures{profile="web"} 1.0'
    agent.wait_for(lambda: failed in agent.get("/metrics").text, "failure in the metrics")
    kept = _explained(agent, "shop/web")
    stays = "its last good version stays in force"
    agent.wait_for(lambda: stays in str(agent.observation()["defects"]), "defect")
    profile.unlink()
    agent.wait_for(lambda: failed not in agent.get("/metrics").text, "end of the failure")

    assert not first["profile"]
    assert kept["profile"] == "web"
    agent.wait_for(lambda: not _explained(agent, "shop/web")["profile"], "end of the profile")


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


def test_events_tell_of_a_drill_and_are_kept_over_a_kill_and_a_restart(start):
    agent = start()
    agent.wait_for(agent.observation, "observation")
    drill = {"requested": True, "requester": "alice", "reason": "a drill"}

    agent.client.put("/safe-mode", json=drill)
    agent.client.put("/safe-mode", json={**drill, "requested": False})
    told = agent.wait_for(lambda: _happened(agent, "safe_mode_released"), "event")
    file = agent.directory / "events.jsonl"
    agent.wait_for(lambda: file.exists() and "released" in file.read_text(), "event in the file")
    agent.stop(signal.SIGKILL)
    agent.socket.unlink()
    again = start()
    kept = again.wait_for(lambda: _happened(again, "mode_changed", 2), "events")
    counted = again.get("/metrics").text

    asked = [event for event in told if event["subject"] == "alice"]
    assert [(event["kind"], event["reason"]) for event in asked] == [
        ("safe_mode_requested", "a drill"),
        ("safe_mode_released", "a drill"),
    ]
    assert kept[: len(told)] == told
    assert [event["number"] for event in kept] == list(range(1, len(kept) + 1))
    assert 'temper_events_total{kind="agent_started"} 1.0' in counted
    assert "safe_mode_requested" not in counted


def test_events_that_cannot_be_written_are_a_defect_and_nothing_else(start, tmp_path):
    (tmp_path / "events.jsonl").mkdir()
    agent = start()

    unkept = "events are not kept over a restart"
    agent.wait_for(lambda: unkept in str(agent.observation()), "defect")

    assert _happened(agent, "agent_started")
    assert agent.stop() == 0


def test_a_profile_that_comes_and_one_that_fails_are_events_of_a_running_agent(start, tmp_path):
    folder = tmp_path / "profiles"
    folder.mkdir()
    agent = start(settings=f'[profiles]\ndirectory = "{folder}"\n')
    agent.wait_for(agent.observation, "observation")
    early = agent.get("/events").json()["events"]

    (folder / "web.toml").write_text('id = "web"\n[[thread_groups]]\nname = "rest"\n')
    agent.wait_for(lambda: _happened(agent, "profile_loaded"), "profile")
    (folder / "web.toml").write_text("id = ")
    agent.wait_for(lambda: _happened(agent, "profile_failed"), "failure")

    assert "profile_loaded" not in {event["kind"] for event in early}


def test_events_are_shown_by_the_command(start):
    agent = start()
    agent.wait_for(agent.observation, "observation")
    agent.wait_for(lambda: _happened(agent, "mode_changed"), "event")

    command = [TEMPER, "events", "--settings", str(agent.path)]
    table = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    document = subprocess.run(
        [*command, "--output", "json", "--kind", "agent_started"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert "agent_started" in table.stdout
    assert [each["kind"] for each in json.loads(document.stdout)["events"]] == ["agent_started"]


def test_the_file_that_asks_for_safe_mode_is_heard_of_when_it_comes_and_goes(start, tmp_path):
    agent = start(looks=False)
    agent.wait_for(agent.observation, "observation")

    (tmp_path / "safe-mode").write_text("disk is being replaced")
    asked = agent.wait_for(lambda: agent.get("/safe-mode").json()["requests"], "request")
    (tmp_path / "safe-mode").unlink()
    agent.wait_for(lambda: not agent.get("/safe-mode").json()["requests"], "end of the request")

    assert set(asked) == {"file"}


def test_profiles_are_heard_of_and_so_is_a_stop(start, tmp_path):
    folder, made = tmp_path / "profiles", tmp_path / "made"
    made.mkdir()
    (made / "web.toml").write_text("id = ")
    agent = start(looks=False, settings=f'[profiles]\ndirectory = "{folder}"\n')
    agent.wait_for(agent.observation, "observation")

    made.rename(folder)
    failed = 'web.toml"} 1.0'
    agent.wait_for(lambda: failed in agent.get("/metrics").text, "failure in the metrics")

    assert agent.stop() == 0


def test_a_second_agent_on_the_same_socket_is_refused(start, tmp_path):
    agent = start()
    agent.wait_for(agent.observation, "observation")

    second = subprocess.run(
        [TEMPER, "agent", "--observe-only", "--settings", str(tmp_path / "agent.toml")],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert second.returncode == 3
    [refusal] = [line for line in second.stderr.splitlines() if line.startswith("temper: ")]
    assert f"another agent answers on {agent.socket}; stop it, or set" in refusal
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


def _happened(agent, kind, times=1):
    """Return all events once there are so many of *kind*."""
    events = agent.get("/events").json()["events"]
    return events if [event["kind"] for event in events].count(kind) >= times else None


def _explained(agent, pod):
    answer = agent.get(f"/explain?pod={pod}")
    return answer.json() if answer.status_code == 200 else {}


def _pod(name, priority):
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "500m"}}}
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"},
        "spec": {"priority": priority, "containers": [container]},
        "status": {"phase": "Running"},
    }


TRIAL = """
schema_version = 1
id = "tuned"
[[thread_groups]]
name = "rest"
"""


@pytest.mark.usefixtures("busy_process")
def test_a_trial_is_decided_by_at_once_and_leaves_nothing_when_it_ends(start):
    agent = start(settings='[[workloads]]\nname = "spin"\nprocess = "sh"\ntier = "high"\n')
    agent.wait_for(lambda: "spin" in agent.get("/explain").text, "workload")

    def profile_is(wanted):
        pods = agent.get("/explain").json()["pods"]
        return next((p for p in pods if p["pod"] == "spin"), {}).get("profile") == wanted

    asked = {"profile": TRIAL, "pods": ["spin"], "seconds": 600}
    begun = agent.client.post("/trials", json=asked)
    agent.wait_for(lambda: profile_is("tuned"), "profile on trial")
    seen = agent.wait_for(lambda: (agent.observation() or {}).get("trials"), "trial")
    agent.client.delete(f"/trials/{begun.json()['id']}")
    agent.wait_for(lambda: not profile_is("tuned"), "end of the trial")

    assert seen == [begun.json()]
    assert agent.wait_for(lambda: (agent.observation() or {}).get("trials") == [], "end")
    told = agent.wait_for(lambda: _happened(agent, "trial_ended"), "event")
    assert [event["kind"] for event in told if "trial" in event["kind"]] == [
        "trial_began",
        "trial_ended",
    ]
    assert not any("tuned" in path.read_text() for path in agent.directory.rglob("*.json"))
