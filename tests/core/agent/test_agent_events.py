"""The events of a running agent: what it records, keeps and shows."""

import json
import signal
import subprocess

from tests.core.agent.running_agent import TEMPER, events_with


def lines_of(file):
    return file.read_text().splitlines()


def test_events_tell_of_a_drill_and_are_kept_over_a_kill_and_a_restart(start):
    agent = start()
    agent.wait_for(agent.observation, "observation")
    drill = {"requested": True, "requester": "alice", "reason": "a drill"}

    agent.client.put("/safe-mode", json=drill)
    agent.client.put("/safe-mode", json={**drill, "requested": False})
    told = agent.wait_for(lambda: events_with(agent, "safe_mode_released"), "event")
    file = agent.directory / "events.jsonl"
    agent.wait_for(lambda: file.exists() and len(lines_of(file)) >= len(told), "events in the file")
    agent.stop(signal.SIGKILL)
    agent.socket.unlink()
    again = start()
    kept = again.wait_for(lambda: events_with(again, "mode_changed", 2), "events")
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

    assert events_with(agent, "agent_started")
    assert agent.stop() == 0


def test_a_request_for_safe_mode_that_cannot_be_written_is_a_defect(start, tmp_path):
    (tmp_path / "safe-mode-requests.json.new").mkdir()
    agent = start()
    agent.wait_for(agent.observation, "observation")

    asked = agent.client.put("/safe-mode", json={"requested": True, "requester": "op"})

    assert asked.status_code == 200
    unkept = "safe-mode-requests.json cannot be written"
    agent.wait_for(lambda: unkept in str(agent.observation()["defects"]), "defect")


def test_a_profile_that_comes_and_one_that_fails_are_events_of_a_running_agent(start, tmp_path):
    folder = tmp_path / "profiles"
    folder.mkdir()
    agent = start(settings=f'[profiles]\ndirectory = "{folder}"\n')
    agent.wait_for(agent.observation, "observation")
    early = agent.get("/events").json()["events"]

    (folder / "web.toml").write_text('id = "web"\n[[thread_groups]]\nname = "rest"\n')
    agent.wait_for(lambda: events_with(agent, "profile_loaded"), "profile")
    (folder / "web.toml").write_text("id = ")
    agent.wait_for(lambda: events_with(agent, "profile_failed"), "failure")

    assert "profile_loaded" not in {event["kind"] for event in early}


def test_events_are_shown_by_the_command(start):
    agent = start()
    agent.wait_for(agent.observation, "observation")
    agent.wait_for(lambda: events_with(agent, "mode_changed"), "event")

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
