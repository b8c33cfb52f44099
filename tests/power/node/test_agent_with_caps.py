"""A real agent that caps made packages and GPUs: its end, its crash, and temper restore."""

import json
import os
import signal
from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from temper_core.errors import EXIT_MACHINE
from tests.core.agent.running_agent import RunningAgent, events_with
from tests.own_host import ENVIRONMENT, NO_OWN_HOSTS, OwnHost, has_own_hosts
from tests.power.node.filed_gpus import FILES, FiledGpus
from tests.power.node.rapl_tree import RaplTree


@pytest.fixture
def tree(tmp_path):
    return RaplTree(tmp_path / "sys", packages=1)


@pytest.fixture
def start(tmp_path, tree, monkeypatch):
    monkeypatch.setenv("NODE_NAME", "n1")
    twin = {
        "kind": "NodeTwin",
        "spec": {
            "nodeName": "n1",
            "cpu": {"packagePowerCapWatts": 100},
            "gpu": {"powerCap": {"scope": "perGpu", "capWattsPerGpu": 250}},
        },
        "status": {"lastUpdated": datetime.now(UTC).isoformat()},
    }
    tmp_path.chmod(0o700)
    (tmp_path / "twin.json").write_text(json.dumps(twin))
    settings = (
        "[scheduler]\nenforce = true\nengine = '/bin/false'\n"
        "[plugins.power.node]\nactuate = true\ninterval = '1s'\nspec_timeout = '1h'\n"
        f"spec_file = '{tmp_path}/twin.json'\npowercap_path = '{tree.powercap}'\n"
    )
    with ExitStack() as running:

        def launch():
            agent = RunningAgent(tmp_path, settings=settings, enforces=True)
            running.callback(agent.stop)
            return agent

        yield launch


def capped(agent, tree):
    return agent.wait_for(lambda: tree.limit_watts() == 100.0, "cap")


def test_a_cap_ends_with_the_agent(start, tree):
    agent = start()
    capped(agent, tree)
    section = agent.wait_for(
        lambda: agent.observation()["sections"]["power"]["caps"]["watts"], "section"
    )
    checks = {each["name"]: each["state"] for each in agent.get("/checks").json()["checks"]}

    assert section == {"package-0": 100.0}
    assert checks["power caps"] == "ok"
    assert agent.stop() == 0
    assert tree.limit_watts() == 150.0


def test_a_request_for_safe_mode_lifts_caps_also_without_sched_ext(start, tree, gpus):
    agent = start()
    capped(agent, tree)
    agent.wait_for(lambda: gpus.limits() == [250, 250], "caps of GPUs")
    request = {"requested": True, "requester": "cli", "reason": "an incident"}

    agent.client.put("/safe-mode", json=request).raise_for_status()
    agent.wait_for(lambda: tree.limit_watts() == 150.0, "former limit")
    agent.wait_for(lambda: gpus.limits() == [350, 350], "former limits of GPUs")
    section = agent.wait_for(
        lambda: agent.observation()["sections"]["power"]["caps"]["message"], "reason"
    )
    agent.client.put("/safe-mode", json={**request, "requested": False}).raise_for_status()

    assert section == "safe mode is requested"
    capped(agent, tree)


@pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS)
def test_a_cap_of_a_killed_agent_is_given_back_by_restore(start, tree, tmp_path):
    agent = start()
    capped(agent, tree)
    agent.stop(signal.SIGKILL)
    during = tree.limit_watts()

    host = OwnHost(tmp_path)
    try:
        done = host.temper("restore", "--settings", str(agent.path))
    finally:
        host.close()

    assert (during, tree.limit_watts()) == (100.0, 150.0)
    assert "constraint_0_power_limit_uw: 150000000 again" in done.stdout


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """Two GPUs of a made pynvml, which every process of the test finds."""
    made = FiledGpus(tmp_path / "gpus")
    for environment in (os.environ, ENVIRONMENT):
        path = os.pathsep.join(filter(None, (made.module_path, environment.get("PYTHONPATH"))))
        monkeypatch.setitem(environment, "PYTHONPATH", path)
        monkeypatch.setitem(environment, FILES, str(made.folder))
    return made


@pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS)
def test_limits_of_gpus_of_a_killed_agent_are_given_back_by_restore(start, gpus, tmp_path):
    agent = start()
    agent.wait_for(lambda: gpus.limits() == [250, 250], "caps of GPUs")
    agent.stop(signal.SIGKILL)
    host = OwnHost(tmp_path)
    try:
        said = host.temper("restore", "--dry-run", "--settings", str(agent.path))
        during = gpus.limits()
        gpus.fail("Driver/library version mismatch")
        failed = host.temper("restore", "--settings", str(agent.path))
        gpus.fail("")
        done = host.temper("restore", "--settings", str(agent.path))
    finally:
        host.close()

    assert "would go: GPU-0/power_limit_mw: 350000 again" in said.stdout
    assert during == [250, 250]
    assert failed.returncode == EXIT_MACHINE
    assert "device-values.json: nvmlInit: NVML: Driver/library version mismatch" in failed.stdout
    assert "removed: GPU-1/power_limit_mw: 350000 again" in done.stdout
    assert gpus.limits() == [350, 350]
    assert not (tmp_path / "instruments").exists()


def test_a_cap_of_a_killed_agent_is_given_back_at_the_next_start(start, tree, tmp_path):
    capped(agent := start(), tree)
    agent.stop(signal.SIGKILL)
    (tmp_path / "twin.json").unlink()

    agent = start()
    agent.wait_for(lambda: tree.limit_watts() == 150.0, "former limit")
    events = agent.wait_for(lambda: events_with(agent, "power_cap_restored"), "event")

    assert "left by an agent that crashed" in [
        event["reason"] for event in events if event["kind"] == "power_cap_restored"
    ]
