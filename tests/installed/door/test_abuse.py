"""A distribution that abuses each part of an instrument, beside the example in a real agent.

After each test the agent has to be as it was: it answers, looks, and is no larger.
``make test`` runs this file.
"""

import json
import re
import socket
import time
from collections import Counter

import httpx2
import pytest

from tests.installed.door.installed_agent import InstalledAgent, helpers_of, wait_until_gone
from tests.patience import PATIENCE_S

POD = "storefront"
PARTS = ("answers", "checks", "closing", "events", "files", "helpers", "metrics", "opening")
PARTS = (*PARTS, "sections", "state", "streams", "trials")
ALLOW = ["run-delay", "kubernetes", *(f"abusive-{part}" for part in PARTS)]
MOST_RESIDENT_MIB = 200
PROMPTLY_S = 8.0
"""A loaded machine takes a while; an agent that waits for a plugin takes an hour."""
STOPS_WITHIN_S = 30.0


@pytest.fixture(scope="module")
def agent(environment, tmp_path_factory):
    running = InstalledAgent(environment, tmp_path_factory.mktemp("abused"), ALLOW)
    many = running.state / "instruments/abusive-many-files"
    for folder in (running.state, many.parent, many):
        folder.mkdir(mode=0o700, parents=True)
    for number in range(10_000):
        (many / f"old-{number}").touch()
    running.start()
    yield running
    running.close()


@pytest.fixture(autouse=True)
def _the_node_is_not_hurt(agent):
    yield
    if agent.process.poll() is None:
        assert_is_well(agent)


def assert_is_well(agent):
    for path in ("/healthz", "/metrics", "/observe", "/plugins", "/safe-mode"):
        begun = time.monotonic()
        answer = agent.tcp.get(path)
        assert answer.status_code == 200, (path, answer.text[:500])
        assert time.monotonic() - begun < PROMPTLY_S, path
    before = agent.observation()["at"]
    agent.wait_for(lambda: agent.observation()["at"] > before, "further observation")
    agent.wait_for(lambda: agent.resident_mib() < MOST_RESIDENT_MIB, "memory given back")


def lost_parts(agent, plugin):
    """Return what is said of a plugin that was set aside in part or as a whole."""
    state = agent.plugins()[plugin]
    return " ".join([*state["lost"], state["failure"]])


def test_an_answer_that_cannot_be_sent_is_a_503_that_names_its_plugin(agent):
    for kind in ("text", "huge", "header", "framing", "status", "raise", "exit"):
        answer = agent.tcp.get(f"/abuse/{kind}")

        assert answer.status_code == 503, kind
        assert "abusive-answers" in answer.json()["error"]
        assert "set-cookie" not in answer.headers
        assert "x-odd" not in answer.headers


def test_an_endpoint_that_hangs_and_one_that_fails_thrice_are_set_aside_and_named(agent):
    assert agent.tcp.get("/abuse/hang").status_code == 503
    for _ in range(3):
        agent.tcp.get("/abuse/raise")

    lost = lost_parts(agent, "abusive-answers")
    assert "endpoint abuse-hang: did not return within 1 s" in lost
    assert "endpoint abuse-raise" in lost


def test_a_path_of_the_agents_own_stays_its_own(agent):
    assert "stolen" not in agent.tcp.get("/healthz").text
    assert agent.socket.post("/safe-mode").status_code == 405


def test_a_stream_that_floods_is_held_back_and_ended(agent):
    size, begun = 0, time.monotonic()
    with agent.tcp.stream("GET", "/abuse/stream/flood") as stream:
        for piece in stream.iter_raw():
            size += len(piece)
            if time.monotonic() - begun > 1.0:
                break

    assert 0 < size < 8_000_000


@pytest.mark.parametrize("kind", ["fail", "no-bytes", "huge-piece"])
def test_a_stream_that_fails_is_cut_and_set_aside_after_the_third_time(agent, kind):
    for _ in range(3):
        with (
            pytest.raises(httpx2.RemoteProtocolError),
            agent.tcp.stream("GET", f"/abuse/stream/{kind}") as stream,
        ):
            list(stream.iter_raw())

    def is_lost():
        return f"stream of endpoint abuse-{kind}" in lost_parts(agent, "abusive-streams")

    agent.wait_for(is_lost, "stream that is set aside")
    assert agent.tcp.get(f"/abuse/stream/{kind}").status_code == 503


def test_a_stream_that_hangs_delays_nothing_when_its_client_goes(agent):
    with agent.tcp.stream("GET", "/abuse/stream/hang") as stream:
        assert next(stream.iter_raw()) == b"first\n"


def test_a_client_that_takes_nothing_delays_nothing(agent):
    with socket.create_connection(("127.0.0.1", agent.port), timeout=PATIENCE_S) as slow:
        slow.sendall(b"GET /abuse/stream/flood HTTP/1.1\r\nHost: agent\r\n\r\n")
        assert slow.recv(15).startswith(b"HTTP/1.1 200")
        assert_is_well(agent)


def test_what_is_no_file_is_not_sent(agent):
    for name in ("fifo", "directory", "deleted", "link"):
        assert agent.tcp.get(f"/abuse/file/{name}").status_code in (404, 503), name


def test_a_file_is_sent_as_large_as_it_was_and_one_that_shrinks_is_cut(agent):
    growing = agent.tcp.get("/abuse/file/growing")

    assert len(growing.content) == int(growing.headers["content-length"])
    try:
        shrinking = agent.tcp.get("/abuse/file/shrinking")
    except httpx2.RemoteProtocolError:
        return
    assert len(shrinking.content) == int(shrinking.headers["content-length"])


def test_metrics_that_are_none_leave_those_of_others_alone(agent):
    def exposition():
        return agent.tcp.get("/metrics").text

    agent.wait_for(lambda: "temper_run_delay_cpus_bucket" in exposition(), "the example's family")
    text = exposition()

    families = Counter(line.split()[2] for line in text.splitlines() if line.startswith("# TYPE"))
    assert set(families.values()) == {1}
    assert not [
        line
        for line in text.splitlines()
        if line.startswith("temper_mode") and line.endswith(" 666.0")
    ]
    assert not [line for line in text.splitlines() if line.startswith("temper_stolen")]
    assert len(text) < 16_000_000
    agent.wait_for(
        lambda: (
            agent.tcp.get("/metrics")
            and "abusive-bad-name" in lost_parts(agent, "abusive-metrics")
            and "abusive-hanging-metrics" in lost_parts(agent, "abusive-metrics")
        ),
        "metrics that are set aside",
    )


def test_checks_that_fail_are_unknown_and_long_ones_are_cut(agent):
    answer = agent.tcp.get("/checks")
    checks = {check["name"]: check for check in answer.json()["checks"]}
    shown = agent.temper("doctor", check=False)

    assert len(answer.content) < 20_000
    assert len(checks["huge-text"]["detail"]) == 500
    assert "\x1b" not in answer.text + shown.stdout
    assert checks["abusive-raising-check"]["state"] == "unknown"
    assert checks["abusive-hanging-check"]["state"] == "unknown"
    assert checks["no-text"]["state"] == "unknown"
    assert checks["run-delay"]["state"] == "ok"
    assert "abusive-hanging-check" in lost_parts(agent, "abusive-checks")


def test_sections_that_are_none_are_dropped_and_named(agent):
    names = ("abusive-no-mapping, section", "abusive-hanging-section, section", "deaf, tell")

    def is_lost():
        lost = lost_parts(agent, "abusive-sections")
        return all(name in lost for name in names)

    def is_refused():
        # A call into the plugin while another one hangs is skipped, and no defect of its.
        defects = agent.observation()["defects"]
        return any("abusive-huge-section: its section is larger" in text for text in defects)

    agent.wait_for(is_lost, "lost parts")
    agent.wait_for(is_refused, "defect")
    sections = agent.observation()["sections"]

    assert "abusive-huge-section" not in sections
    assert "abusive-no-mapping" not in sections
    assert "run-delay" in sections


def test_a_flood_of_events_pushes_no_other_out_and_undeclared_kinds_are_refused(agent):
    document = agent.observation()
    flood = agent.events("abusive_flood")

    assert agent.events("agent_started")
    assert 0 < len(flood) <= 200
    assert all(len(event["subject"]) <= 200 for event in flood)
    assert "\x1b" not in json.dumps(flood, ensure_ascii=False)
    assert agent.wait_for(lambda: agent.events("events_dropped"), "count of what was dropped")
    assert "never_declared" in document["sections"]["abusive-events"]["refused"]
    assert any("abusive-events" in d and "safe_mode_entered" in d for d in document["defects"])
    assert not [e for e in agent.events("safe_mode_entered") if e["source"] != "agent"]
    assert (agent.state / "events.jsonl").stat().st_size <= 1_100_000


def test_state_directories_are_trimmed_and_a_link_is_not_followed(agent):
    def trimmed():
        subjects = {event["subject"] for event in agent.events("state_trimmed")}
        return subjects >= {"instrument abusive-many-files", "instrument abusive-huge-file"}

    agent.wait_for(trimmed, "state that is trimmed")
    folder = agent.state / "instruments"
    [victim] = agent.folder.rglob("precious")
    refused = agent.observation()["sections"]["abusive-link"]["refused"]
    assert len(list((folder / "abusive-many-files").iterdir())) <= 10_000
    assert not (folder / "abusive-huge-file/huge").exists()
    assert victim.stat().st_size == 200 * 1024
    assert not (victim.parent / "stolen").exists()
    assert refused


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("eat_memory", "ran out of its 64 MiB of memory"),
        ("killed", "SIGKILL"),
        ("fork", "processes|memory|has not ended within 2 s"),
        ("print_on", "CPU|has not ended within 2 s"),
        ("forever", "has not ended within 2 s"),
        ("huge_result", "returned 2000014 bytes"),
    ],
)
def test_a_helper_that_breaks_a_bound_is_ended_with_all_that_it_forked_and_named(
    agent, name, reason
):
    before = set(helpers_of(agent.process.pid))
    begun = agent.socket.post(f"/abuse/helper/{name}")
    assert begun.status_code == 200, begun.text

    ended = agent.wait_for(lambda: agent.socket.get(f"/abuse/helper/{name}").json(), "its end")

    assert re.search(reason, ended["reason"])
    wait_until_gone(set(helpers_of(agent.process.pid)) - before)


def test_a_hundred_helpers_are_no_more_than_may_run(agent):
    answer = agent.socket.post("/abuse/hundred-helpers").json()

    assert answer["started"] <= 2
    assert answer["refusals"]


def test_trials_that_cannot_be_are_refused(agent):
    answer = agent.socket.post("/abuse/trials/none/nothing").json()
    profile = 'id = "odd"\n[[thread_groups]]\nname = "all"\n'

    def begin(pods, seconds):
        body = {"profile": profile, "pods": pods, "seconds": seconds}
        return agent.socket.post("/trials", json=body)

    assert all("refused" in outcome for outcome in answer.values())
    assert begin([POD], 1_000_000).status_code == 400
    assert begin(["nowhere/nothing"], 60).status_code == 400
    first = begin([POD], 60)
    assert first.status_code == 201
    assert begin([POD], 60).status_code == 400
    assert agent.socket.delete(f"/trials/{first.json()['id']}").status_code == 200


def test_instruments_that_cannot_be_opened_are_named_and_leave_no_helper(agent):
    defects = " ".join(agent.observation()["defects"])
    forever = agent.observation()["sections"]["abusive-helpers"]["forever"]

    for name in ("raising-opening", "nothing-opened", "hanging-opening"):
        assert f"instrument abusive-{name}" in defects
    assert helpers_of(agent.process.pid) == [forever]
    assert "abusive-hanging-opening" in lost_parts(agent, "abusive-opening")


def test_safe_mode_can_be_asked_for_while_everything_is_abused(agent):
    body = {"requested": True, "requester": "test", "reason": "abuse"}

    begun = time.monotonic()
    answer = agent.socket.put("/safe-mode", json=body)
    released = agent.socket.put("/safe-mode", json={"requested": False, "requester": "test"})

    assert answer.json()["requests"]["test"]["reason"] == "abuse"
    assert released.json()["released"] is True
    assert time.monotonic() - begun < PROMPTLY_S


def test_it_stops_within_its_bound_and_nothing_is_left_on_the_host(agent):
    """The last test of this file: it stops the agent."""
    helpers = helpers_of(agent.process.pid)
    with agent.tcp.stream("GET", "/abuse/stream/flood") as stream:
        next(stream.iter_raw())
        status, seconds = agent.stop()
    restored = json.loads(agent.temper("restore", "--output", "json", check=False).stdout)

    assert (status, seconds < STOPS_WITHIN_S) == (0, True)
    assert len(helpers) == 1
    wait_until_gone(helpers)
    assert str(agent.state / "instruments/abusive-many-files") in restored["removed"]
    left = {path.name for path in agent.state.rglob("*")}
    assert left <= {"instruments", "abusive-link"}
    assert not (agent.folder / "run").exists()
