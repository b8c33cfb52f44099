"""The example distribution as a user gets it: a wheel beside the agent's, in an empty environment.

No test of it imports the plugin here: it is installed, found, and at work in a real agent.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.installed.wheels import ROOT, environment_by_uv, run
from tests.patience import PATIENCE_S

EXAMPLE = ROOT / "examples" / "temper-plugin-batch-guard"
SPIN = "while True: pass"
SETTINGS = """
node = "node-1"
run_directory = "{folder}/run"
state_directory = "{folder}"

[scheduler]
enforce = false

[server]
listen = "127.0.0.1:{port}"

[profiles]
directory = "{profiles}"

[observe]
period_s = 0.5

[lint]
windows = 2
fire_after = 1

[plugins.batch-guard]
names = ["nightly-*"]
batch_cpus = 0.01

[[workloads]]
name = "storefront"
process = "storefront"
tier = "high"

[[workloads]]
name = "nightly-report"
process = "nightly-report"
"""


@pytest.fixture(scope="module")
def environment(wheel_of, tmp_path_factory):
    """Return an environment that holds the agent, the example, pytest, and nothing else of ours."""
    wheels = map(wheel_of, (ROOT, EXAMPLE))
    return environment_by_uv(["pytest", *wheels], tmp_path_factory.mktemp("example"))


@pytest.fixture
def temper(environment):
    def call(*arguments, check=True):
        return run(environment / "bin" / "temper", *arguments, check=check)

    return call


@contextmanager
def running(*command, **options):
    process = subprocess.Popen([str(part) for part in command], **options)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def agent(environment, tmp_path_factory):
    """Run an agent beside a service and a batch job that share one CPU; return its settings."""
    folder = tmp_path_factory.mktemp("agent")
    settings = folder / "agent.toml"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = SETTINGS.format(port=port, folder=folder, profiles=EXAMPLE / "profiles")
    settings.write_text(text)
    with ExitStack() as stack:
        for name in ("storefront", "nightly-report"):
            (folder / name).symlink_to(Path(sys.executable).resolve())
            spinner = stack.enter_context(running(folder / name, "-S", "-c", SPIN))
            os.sched_setaffinity(spinner.pid, {min(os.sched_getaffinity(0))})
        log = stack.enter_context((folder / "log").open("w"))
        command = (environment / "bin" / "temper", "agent", "--settings", settings)
        stack.enter_context(running(*command, stderr=log))
        yield settings, f"http://127.0.0.1:{port}"


def answer(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.read().decode()
    except (urllib.error.URLError, OSError):
        return ""


def eventually(look, url):
    """Return what *look* finds in the answer, asked for again until it finds something."""
    ends_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_at:
        said = answer(url)
        found = look(said) if said else None
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not seen within {PATIENCE_S} s in: {answer(url)[:2000]}")


def test_the_plugin_is_found_and_active(temper):
    states = {
        each["name"]: each for each in json.loads(temper("plugins", "--output", "json").stdout)
    }

    assert states["batch-guard"]["state"] == "active"
    assert states["batch-guard"]["distribution"] == "temper-plugin-batch-guard"
    assert set(states["batch-guard"]["hooks"]) == {
        "temper_detectors",
        "temper_exporters",
        "temper_invariants",
        "temper_metrics",
        "temper_settings",
    }


def test_its_own_tests_pass_where_only_the_agent_is(environment, tmp_path):
    copy = tmp_path / "example"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("temper_plugin_*", "__pycache__"))

    done = run(environment / "bin" / "pytest", "-q", "-p", "no:cacheprovider", copy, cwd=tmp_path)

    assert " passed" in done.stdout


def test_its_detector_chooses_the_profile_of_a_job(temper, tmp_path):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "report-x7",
            "namespace": "ops",
            "uid": "5f3f4b1e-3a9f-4d3b-9a53-0a1b2c3d4e5f",
            "ownerReferences": [{"kind": "Job", "name": "report", "controller": True}],
        },
        "spec": {"containers": [{"name": "main", "image": "registry.example/report:1"}]},
    }
    pods = tmp_path / "pods.json"
    pods.write_text(json.dumps(pod))

    machine = ROOT / "examples" / "machines" / "16-cores.toml"
    profiles = EXAMPLE / "profiles"
    given = ("--pods", pods, "--machine", machine, "--profiles", profiles, "--output", "json")
    [assignment] = json.loads(temper("plan", *given).stdout)["assignments"]

    assert assignment["profile"] == "batch"
    assert "its owner Job/report" in assignment["profile_reason"]


def test_its_metrics_are_those_of_a_real_batch_job(agent):
    _, url = agent

    def used(text):
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[:1] != "#")
        found = float(values.get("temper_batch_cpus_used", 0))
        return (values["temper_batch_pods"], found) if found > 0 else None

    pods, cpus = eventually(used, f"{url}/metrics")

    assert float(pods) == 1
    assert cpus <= 1.1


def test_its_invariant_fires_where_a_job_keeps_a_service_waiting(agent):
    _, url = agent

    def fired(text):
        return [
            each
            for each in json.loads(text)["violations"]
            if each["invariant"] == "batch_in_the_way"
        ]

    [violation] = eventually(fired, f"{url}/observe")

    assert violation["plugin"] == "batch-guard"
    assert violation["subject"].startswith("storefront storefront")
    assert "nightly-report uses" in violation["message"]


def test_it_judges_a_recording_of_that_agent_too(agent, temper, tmp_path):
    settings, url = agent
    eventually(lambda text: "nightly-report" in text, f"{url}/observe")
    recording = tmp_path / "node.rec.gz"

    recorded = temper("observe", "--settings", settings, "--record", recording, "--looks", 3)
    simulated = temper("simulate", recording, "--output", "json", check=False)

    told = json.loads(simulated.stdout)
    assert "3 looks" in recorded.stderr
    assert told["recording"]["source"] == "agent"
    assert {each["invariant"] for each in told["violations"]} == {"batch_in_the_way"}
    profiles = {each["pod"]: each["profile"] for each in told["pods"]}
    # The machine's own pods are in the recording too, whatever they are.
    assert profiles.items() >= {"nightly-report": "batch", "storefront": None}.items()
    assert simulated.returncode == 1
