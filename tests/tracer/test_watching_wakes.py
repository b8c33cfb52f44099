"""The agent watches wake-ups while somebody asks: a real process, over its own socket."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from temper_core.bpf.access import probe
from tests.patience import PATIENCE_S

TEMPER = str(Path(sys.executable).with_name("temper"))


@pytest.fixture
def start(tmp_path):
    """Start an agent with a table ``[plugins.tracer]``; return its process and a client."""
    running = []

    def launch(tracer):
        path, socket = tmp_path / "agent.toml", tmp_path / "run" / "agent.sock"
        path.write_text(
            f'run_directory = "{socket.parent}"\nstate_directory = "{tmp_path}"\n'
            '[server]\nlisten = ""\n[scheduler]\nenforce = false\n'
            f"[observe]\nperiod_s = 0.5\nbudget_cpu_ratio = 1.0\n[plugins.tracer]\n{tracer}"
        )
        log = (tmp_path / "log").open("w")
        process = subprocess.Popen([TEMPER, "agent", "--settings", str(path)], stderr=log)
        client = httpx2.Client(
            transport=httpx2.HTTPTransport(uds=str(socket)),
            base_url="http://agent",
            timeout=PATIENCE_S,
        )
        running.append((process, client, log))
        end = time.monotonic() + PATIENCE_S
        while not socket.exists():
            assert time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.05)
        return process, client

    yield launch
    for process, client, log in running:
        client.close()
        process.kill()
        process.wait()
        log.close()


def wait_for(client, path, is_there):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        answer = client.get(path)
        if answer.status_code == 200 and is_there(answer.json()):
            return answer.json()
        time.sleep(0.1)
    raise AssertionError(f"{path} said last: {answer.text[:2000]}")


def skip_without_bpf():
    access = probe()
    if not access.is_allowed:
        pytest.skip(access.reason)


def test_nothing_is_watched_until_somebody_asks_and_then_it_costs_what_is_charged(start):
    skip_without_bpf()
    process, client = start("")
    before = wait_for(client, "/wakes", lambda said: "is_on" in said)

    asked = client.put("/wakes", json={"seconds": 30}).json()
    found = wait_for(client, "/wakes", lambda said: said["window"])
    wait_for(
        client,
        "/observe",
        lambda said: "instrument_tracer_windows_user" in said["overhead"]["cpu_ratio"],
    )
    shown = wait_for(client, "/observe", lambda said: "tracer" in said["sections"])
    scraped = client.get("/metrics").text
    process.send_signal(signal.SIGTERM)

    assert (before["is_on"], before["window"]) == (False, None)
    assert asked["is_on"] is True
    assert found["window"]["waits"][0]["subject"] == "node"
    assert found["window"]["waits"][0]["waits"] > 0
    assert shown["sections"]["tracer"]["schema_version"] == 1
    assert shown["sections"]["tracer"]["waits"][0]["subject"] == "node"
    assert "temper_node_wait_seconds_count " in scraped
    assert "temper_wake_windows_total " in scraped
    assert process.wait(timeout=PATIENCE_S) == 0


def test_the_settings_have_it_watched_from_the_start(start):
    skip_without_bpf()
    _, client = start("edges = true\n")

    found = wait_for(client, "/wakes", lambda said: said["window"])

    assert (found["is_on"], found["until"]) == (True, None)
