"""When a trial is in force: the plans are those of the agent's own compiler, the server is not."""

import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from click.testing import CliRunner

from temper_core import load_settings
from temper_core.cli.plan import command as plan_command
from temper_plugin_trainer.refining.trial_door import Door, way_here

MACHINE = Path(__file__).parents[3] / "examples" / "machines" / "16-cores.toml"
CONTAINER = {"name": "m", "image": "shop:1", "resources": {"requests": {"cpu": "4"}}}
POD = {
    "metadata": {"name": "db", "namespace": "shop", "uid": "u1"},
    "spec": {"priority": 1_000_000, "containers": [CONTAINER]},
    "status": {"phase": "Running"},
}
PROFILE = """
schema_version = 1
id = "train-shop"
[fingerprint]
images = ["shop:*"]
[[thread_groups]]
name = "compute"
match = [{ comm_prefix = "w-" }]
treatment = "exclusive"
cpu_fraction = 0.5
[[thread_groups]]
name = "rest"
"""
ENFORCING = {"mode": "enforcing", "reason": "", "detail": ""}


class Agent(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers with *answers*, by path."""

    daemon_threads = True

    def __init__(self, path, answers):
        super().__init__(str(path), Handler)
        self.answers = answers
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    server_version = "temper/0.1.0"

    def do_GET(self):
        body = json.dumps(self.server.answers[self.path.partition("?")[0]]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "socket"

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """The plan of a pod with the profile, which owns two cores of two CPUs."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "shop.toml").write_text(PROFILE)
    (folder / "pods.json").write_text(json.dumps({"kind": "List", "items": [POD]}))
    settings = folder / "agent.settings"
    settings.write_text(f'[profiles]\ndirectory = "{folder}"\n')
    given = {"--pods": folder / "pods.json", "--machine": MACHINE, "--settings": settings}
    words = [str(part) for pair in given.items() for part in pair]
    done = CliRunner().invoke(plan_command, [*words, "--steered", "--output", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def agent(tmp_path, plan):
    answers = {
        "/explain": {"profile_reason": "trial 3 of socket uid 0: train-shop"},
        "/safe-mode": ENFORCING,
        "/plan": json.loads(json.dumps(plan)),
    }
    server = Agent(tmp_path / "agent.sock", answers)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def door(tmp_path, agent):
    settings = tmp_path / "agent.toml"
    settings.write_text(f'[server]\nlisten = ""\nsocket = "{agent.server_address}"\n')
    return Door(way_here(load_settings(settings)), ("shop/db",))


def test_a_trial_whose_group_has_its_cores_is_in_force(door):
    assert not door.obstacle("3", "train-shop", {"compute": 2})


def test_a_fence_of_another_size_is_not_that_of_the_arm(door):
    found = door.obstacle("3", "train-shop", {"compute": 1})

    assert found == "the group compute has 4 CPUs of its own, not 2"


def test_a_group_without_a_layer_is_not_exclusive(door):
    assert "the group io has 0 CPUs" in door.obstacle("3", "train-shop", {"io": 1})


def test_a_fence_that_no_pod_of_the_trial_uses_is_in_the_way(door, agent):
    layer = next(row for row in agent.answers["/plan"]["layers"] if "compute" in row["name"])
    layer["pods"] = []

    assert "train-shop.compute.critical of another arm" in door.obstacle("3", "train-shop", {})


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ({"detail": "another engine in 12 s"}, "enforcing another engine in 12 s"),
        ({"mode": "reloading", "detail": "between two engines"}, "reloading between two engines"),
        ({"mode": "safe_mode", "reason": "requested"}, "safe_mode requested"),
    ],
)
def test_a_pending_engine_and_another_mode_are_in_the_way(door, agent, state, why):
    agent.answers["/safe-mode"] = {**ENFORCING, **state}

    assert door.obstacle("3", "train-shop", {}) == why


def test_a_decision_for_another_trial_is_not_one_for_this(door):
    assert door.obstacle("4", "train-shop", {}) == "the agent has not yet decided on shop/db"


def test_a_layer_that_waits_for_an_engine_is_in_the_way(door, agent):
    note = {"code": "waiting", "subject": "train-shop.io.critical", "message": "waits for it"}
    agent.answers["/plan"]["notes"] = [note]

    assert door.obstacle("3", "train-shop", {}) == "waits for it"
