"""When a trial is in force: the plans are those of the agent's own compiler, the server is not."""

import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from click.testing import CliRunner

from temper_core import Mode, PodSample, Severity, Status, Tier, Violation, load_settings
from temper_core.cli.plan import command as plan_command
from temper_core.observe.document import observe_document
from temper_core.testing import make_snapshot, make_thread
from temper_plugin_trainer.refining.trial_door import Door, way_here
from temper_plugin_trainer.remote.narrowing import narrowed
from temper_plugin_trainer.remote.relay import Relay

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
NAMES = ("db", "web-1", "web-2")
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


@pytest.fixture(params=["here", "by a relay"])
def door(tmp_path, agent, request):
    settings = tmp_path / "agent.toml"
    settings.write_text(f'[server]\nlisten = ""\nsocket = "{agent.server_address}"\n')
    ask = way_here(load_settings(settings))

    def by_relay(path, method="GET", body=None, query=None):
        asked = {"path": path, "method": method, "body": body, "query": query}
        return Relay(ask).answer(json.dumps(asked).encode())["answer"]

    return Door(ask if request.param == "here" else by_relay, ("shop/db",))


def test_a_look_has_the_state_of_the_node_and_the_waits_of_other_pods(door, agent):
    pods = [PodSample("shop", name, name, Tier.NORMAL, 1, 0.5, run_delay=0.25) for name in NAMES]
    status = Status(Mode.ENFORCING, engine="scx_layered 1.1.0", detail="steady")
    words = ("layer_mismatch", Severity.WARNING, "shop/web", "a thread is elsewhere", "none")
    violation = Violation(*words, evidence={}, since=0.0)
    snapshot = make_snapshot(pods=pods, status=status, violations=(violation,))
    agent.answers["/observe"] = json.loads(json.dumps(observe_document(snapshot, 1)))

    look = door.look()

    assert look.mode == "enforcing"
    assert look.why == "steady"
    assert look.engine == "scx_layered 1.1.0"
    assert look.violations == {"layer_mismatch of shop/web"}
    assert look.waits == pytest.approx(0.25 * (len(NAMES) - 1))
    assert look.at == "2025-06-15T15:06:40.000Z"


def test_the_request_of_a_pod_is_known(door, agent):
    agent.answers["/explain"]["inputs"] = {"cpu_request": "4000m"}

    assert door.cpu_request_millis() == 4000


def test_a_relay_sends_little_of_an_observation():
    pods = [PodSample("shop", f"web-{n}", f"u{n}", Tier.NORMAL, 9, 0.5) for n in range(200)]
    threads = [make_thread() for _ in range(50)]
    whole = observe_document(make_snapshot(*threads, pods=pods), 1)

    kept = narrowed("/observe", whole)

    assert len(kept["pods"]) == 200
    assert len(json.dumps(kept)) < len(json.dumps(whole)) / 6
    assert narrowed("/trials", whole) is whole


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
