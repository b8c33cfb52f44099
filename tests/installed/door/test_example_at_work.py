"""The example that uses every part of an instrument, at work in a real agent beside one at rest.

The abusive distribution is installed too, but not allowed. ``make test`` runs this file.
"""

import gzip
import json
import os
import signal
import stat

import pytest

from tests.installed.door.installed_agent import (
    TOKEN,
    InstalledAgent,
    helpers_of,
    is_gone,
    wait_until_gone,
)
from tests.installed.wheels import ROOT, run

POD = "storefront"
EXAMPLE = ROOT / "examples/temper-plugin-run-delay"


@pytest.fixture(scope="module")
def agent(environment, tmp_path_factory):
    allow = ["run-delay", "kubernetes"]
    running = InstalledAgent(environment, tmp_path_factory.mktemp("agent"), allow)
    running.start()
    yield running
    running.close()


@pytest.fixture
def log_name(agent):
    """Return the name of a log with a known content."""
    file = agent.state / "instruments/run-delay/delays-1000.jsonl"
    line = json.dumps({"at": 1.0, "delays": {POD: 0.25}})
    file.write_text(f"{line}\n" * 100)
    return file.name


def test_its_own_tests_pass_where_it_is_installed(environment, tmp_path):
    command = (environment / "bin/pytest", "-q", "-p", "no:cacheprovider", EXAMPLE / "tests")

    done = run(*command, f"--rootdir={tmp_path}", cwd=tmp_path)

    assert " passed" in done.stdout


@pytest.mark.parametrize("way", ["tcp", "socket"])
def test_the_page_and_what_it_loads_have_the_headers_of_pages(agent, way):
    client = getattr(agent, way)

    page = client.get("/")
    script = client.get("/run-delay/page/page.js")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>Run delay</title>" in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["cache-control"] == "max-age=3600"
    assert client.get("/run-delay/page/..%2flogs.py").status_code == 404
    assert "run-delay" in client.get("/index").text


def opens_stream(agent):
    with agent.tcp.stream("GET", "/run-delay/live") as stream:
        return stream.status_code == 200


def test_the_stream_has_an_event_for_each_snapshot_and_ends_with_its_client(agent):
    with agent.tcp.stream("GET", "/run-delay/live") as stream:
        lines = stream.iter_lines()
        fields = [next(lines) for _ in range(8)]
    numbers = [int(line.removeprefix("id: ")) for line in fields if line.startswith("id: ")]

    assert stream.headers["content-type"].startswith("text/event-stream")
    assert fields[0] == "event: delays"
    assert len(numbers) == 2
    assert numbers[1] == numbers[0] + 1
    # More streams than there is room for, one after the other.
    for _ in range(20):
        agent.wait_for(lambda: opens_stream(agent), "room for a stream")


def test_a_log_is_a_file_with_ranges(agent, log_name):
    path = f"/run-delay/logs/{log_name}"

    whole = agent.tcp.get(path)
    tag = whole.headers["etag"]
    part = agent.tcp.get(path, headers={"Range": "bytes=2-3"})
    unchanged = agent.tcp.get(path, headers={"If-None-Match": tag})
    beyond = agent.tcp.get(path, headers={"Range": "bytes=9999999-"})

    assert whole.status_code == 200
    assert (part.status_code, part.text) == (206, whole.text[2:4])
    assert part.headers["content-range"] == f"bytes 2-3/{len(whole.content)}"
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert beyond.status_code == 416
    assert agent.tcp.get("/run-delay/logs/delays-7.jsonl").status_code == 404
    assert agent.tcp.get("/run-delay/logs/agent.toml").status_code == 400


def test_removing_a_log_needs_the_socket_or_a_token_and_is_audited(agent, log_name):
    path = f"/run-delay/logs/{log_name}"

    statuses = [
        agent.tcp.delete(path).status_code,
        agent.tcp.delete(path, headers={"Authorization": "Bearer wrong"}).status_code,
        agent.tcp.delete(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code,
        agent.socket.delete(path).status_code,
    ]

    assert statuses == [401, 401, 200, 404]
    line = f"DELETE {path}"
    refused = [event for event in agent.events("request_refused") if event["subject"] == line]
    [carried_out] = [event for event in agent.events("request") if event["subject"] == line]
    assert [event["outcome"][:3] for event in refused] == ["401", "401", "404"]
    assert refused[2]["requester"] == f"socket uid {os.getuid()}"
    assert carried_out["requester"] == "token ops from 127.0.0.1"
    assert carried_out["outcome"] == "done"


def test_a_page_of_another_origin_may_not_act(agent, log_name):
    path = f"/run-delay/logs/{log_name}/summary"
    headers = {"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}

    refused = agent.tcp.post(path, headers=headers)
    own = agent.tcp.post(path, headers={**headers, "Origin": f"http://127.0.0.1:{agent.port}"})

    assert (refused.status_code, own.status_code) == (403, 202)


def test_a_helper_summarizes_a_log_and_one_that_is_killed_is_named(agent, log_name):
    def ended():
        summary = agent.tcp.get("/run-delay/summary").json()
        return None if summary["state"] in ("running", "none") else summary

    agent.wait_for(lambda: not helpers_of(agent.process.pid), "end of the helpers before")
    agent.socket.post(f"/run-delay/logs/{log_name}/summary")
    done = agent.wait_for(ended, "summary")
    fifo = agent.state / "instruments/run-delay/delays-1.jsonl"
    os.mkfifo(fifo)
    agent.socket.post(f"/run-delay/logs/{fifo.name}/summary")
    pid = agent.tcp.get("/run-delay/summary").json()["pid"]
    os.kill(pid, signal.SIGKILL)
    killed = agent.wait_for(ended, "end of the helper")
    fifo.unlink()

    assert done["pods"][POD] == {"count": 100, "median": 0.25, "p99": 0.25}
    assert killed["state"] == "failed"
    assert "SIGKILL" in killed["reason"]
    wait_until_gone([pid])


def test_its_section_is_in_the_observation_and_in_recordings(agent, tmp_path):
    section = agent.observation()["sections"]["run-delay"]
    recording = tmp_path / "node.rec.gz"

    agent.temper("observe", "--record", recording, "--looks", "2")
    simulated = agent.temper("simulate", recording, "--output", "json", check=False)

    assert section["schema_version"] == 1
    assert POD in section["delays"]
    assert b'"run-delay"' in gzip.decompress(recording.read_bytes())
    assert json.loads(simulated.stdout)["recording"]["source"] == "agent"


def test_its_histogram_and_its_lines_of_the_overhead_are_metrics(agent):
    def is_charged():
        return "instrument_run-delay_log_user" in agent.observation()["overhead"]["cpu_ratio"]

    text = agent.wait_for(
        lambda: (
            (found := agent.tcp.get("/metrics").text).count("instrument_run-delay_log") and found
        ),
        "line of the overhead",
    )
    overhead = agent.observation()["overhead"]["cpu_ratio"]

    assert "# TYPE temper_run_delay_cpus histogram" in text
    assert 'temper_run_delay_cpus_bucket{le="+Inf"}' in text
    assert 'temper_overhead_cpu_ratio{part="instrument_run-delay_user"}' in text
    assert {"instrument_run-delay_user", "instrument_run-delay_log_user"} <= overhead.keys()


def test_doctor_shows_its_check(agent):
    checks = agent.tcp.get("/checks").json()["checks"]
    shown = agent.temper("doctor", check=False).stdout

    [check] = [check for check in checks if check["plugin"] == "run-delay"]
    assert check["name"] == "run-delay"
    assert check["detail"] in " ".join(shown.split())


def test_its_commands_are_those_of_temper_and_of_kubectl_temper(agent):
    for command in (("run-delay",), ("k8s", "run-delay")):
        assert POD in agent.temper(*command).stdout


def test_it_tries_a_profile_and_so_does_a_token_until_released_or_expired(agent):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    profile = (EXAMPLE / "temper_plugin_run_delay/favoured.toml").read_text()

    def trials():
        return agent.tcp.get("/trials").json()["trials"]

    agent.socket.post("/run-delay/trials", json={"pod": POD, "seconds": 60})
    [own] = trials()
    agent.wait_for(lambda: agent.observation()["trials"], "trial in /observe")
    released = agent.socket.delete("/run-delay/trials").json()
    begun = agent.tcp.post(
        "/trials", headers=headers, json={"profile": profile, "pods": [POD], "seconds": 1}
    )
    agent.wait_for(lambda: not trials(), "end of the trial")

    assert (own["owner"], own["profile"], own["pods"]) == ("run-delay", "favoured", [POD])
    assert released == {"released": 1}
    assert begun.status_code == 201
    assert begun.json()["owner"] == "token ops"
    agent.wait_for(lambda: len(agent.events("trial_ended")) == 2, "events of the trials")
    assert not list(agent.state.rglob("favoured*"))


def test_what_it_keeps_outlives_the_agent_within_its_bound_and_is_removed_by_restore(agent):
    """The last test of this file: it stops the agent, starts it again, kills it and restores."""
    folder = agent.state / "instruments/run-delay"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    old = folder / "delays-2.jsonl"
    old.write_text("x" * 300 * 1024)
    os.utime(old, (1, 1))
    agent.wait_for(lambda: agent.events("delay_log_closed"), "event of the example")
    with agent.tcp.stream("GET", "/run-delay/live") as stream:
        lines = stream.iter_lines()
        next(lines)
        status, seconds = agent.stop()
        ended = list(lines)
    assert (status, len(ended) > 0, seconds < 15) == (0, True, True)
    assert agent.lamp.read_text() == "dark"

    agent.start()

    assert agent.events("delay_log_closed")
    [trimmed] = agent.wait_for(lambda: agent.events("state_trimmed"), "trimming")
    assert trimmed["subject"] == "instrument run-delay"
    assert not old.exists()
    shown = agent.temper("events", "--output", "json").stdout
    assert {"state_trimmed", "delay_log_closed"} <= {
        event["kind"] for event in json.loads(shown)["events"]
    }
    fifo = folder / "delays-1.jsonl"
    os.mkfifo(fifo)
    asked = agent.socket.post(f"/run-delay/logs/{fifo.name}/summary")
    assert asked.status_code == 202, asked.text
    pid = agent.socket.get("/run-delay/summary").json()["pid"]
    assert not is_gone(pid)
    agent.wait_for(lambda: agent.lamp.read_text() == "lit", "light")
    agent.stop(signal.SIGKILL)
    wait_until_gone([pid])
    lit = agent.lamp.read_text()
    said = json.loads(agent.temper("restore", "--dry-run", "--output", "json").stdout)
    restored = json.loads(agent.temper("restore", "--output", "json").stdout)
    assert "front/lamp: dark again" in said["removed"]
    assert {str(folder), "front/lamp: dark again"} <= set(restored["removed"])
    assert (lit, agent.lamp.read_text()) == ("lit", "dark")
    assert not agent.state.exists()
