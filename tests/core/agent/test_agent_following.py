"""What a running agent follows: pods, profiles, the safe-mode file and trials."""

import json
import os

import pytest

from tests.core.agent.running_agent import events_with, explanation, pod_object

TRIAL = """
schema_version = 1
id = "tuned"
[[thread_groups]]
name = "rest"
"""


def test_a_pod_list_is_followed_and_explained(start, tmp_path):
    pods = tmp_path / "pods.json"
    pods.write_text(json.dumps({"kind": "PodList", "items": [pod_object("web", 1_000_000)]}))
    agent = start("--pods", str(pods))

    first = agent.wait_for(lambda: explanation(agent, "shop/web"), "explanation")
    pods.write_text(json.dumps({"kind": "PodList", "items": [pod_object("web", -5)]}))
    agent.wait_for(lambda: explanation(agent, "shop/web").get("tier") == "low", "change of tier")

    assert first["tier"] == "critical"
    assert agent.get("/explain?pod=shop/nobody").status_code == 404


def test_profiles_are_followed_and_their_failures_counted(start, tmp_path):
    profile, pods = tmp_path / "profiles" / "web.toml", tmp_path / "pods.json"
    profile.parent.mkdir()
    named = pod_object("web", -5)
    named["metadata"]["annotations"] = {"temper.codes/workload-profile": "web"}
    pods.write_text(json.dumps({"kind": "PodList", "items": [named]}))
    agent = start("--pods", str(pods), settings=f'[profiles]\ndirectory = "{profile.parent}"\n')
    first = agent.wait_for(lambda: explanation(agent, "shop/web"), "explanation")

    profile.write_text('schema_version = 1\nid = "web"\n[[thread_groups]]\nname = "rest"\n')
    agent.wait_for(lambda: explanation(agent, "shop/web").get("profile"), "profile")
    profile.write_text("id = ")
    failed = 'temper_profile_load_failures{profile="web"} 1.0'
    agent.wait_for(lambda: failed in agent.get("/metrics").text, "failure in the metrics")
    kept = explanation(agent, "shop/web")
    stays = "its last good version stays in force"
    agent.wait_for(lambda: stays in str(agent.observation()["defects"]), "defect")
    profile.unlink()
    agent.wait_for(lambda: failed not in agent.get("/metrics").text, "end of the failure")

    assert not first["profile"]
    assert kept["profile"] == "web"
    agent.wait_for(lambda: not explanation(agent, "shop/web")["profile"], "end of the profile")


def test_an_observation_beside_a_thousand_refused_profiles_is_small(start, tmp_path):
    folder = tmp_path / "profiles"
    folder.mkdir()
    for number in range(1_000):
        (folder / f"{number:04}.toml").write_text(f'id = "{"é" * 4_000}"\n')

    agent = start(settings=f'[profiles]\ndirectory = "{folder}"\n')
    last = "profiles: 980 more could not be loaded"
    agent.wait_for(lambda: last in (agent.observation() or {}).get("defects", ()), "defects")
    recording = agent.get("/recording")

    assert len(agent.get("/observe").content) < 1_000_000
    assert recording.status_code == 200
    assert len(recording.content) < 1_000_000


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
    told = agent.wait_for(lambda: events_with(agent, "trial_ended"), "event")
    assert [event["kind"] for event in told if "trial" in event["kind"]] == [
        "trial_began",
        "trial_ended",
    ]
    assert not any("tuned" in path.read_text() for path in agent.directory.rglob("*.json"))


def sparse(path):
    with path.open("wb") as file:
        file.truncate(3 << 30)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, sparse])
@pytest.mark.parametrize(
    ("name", "requester"),
    [("safe-mode", "file"), ("safe-mode-requests.json", "unreadable-state")],
)
def test_an_agent_starts_beside_a_hostile_state_and_takes_it_for_a_request(
    start, tmp_path, name, requester, make
):
    make(tmp_path / name)

    agent = start()
    agent.wait_for(agent.observation, "observation")

    assert list(agent.get("/safe-mode").json()["requests"]) == [requester]
