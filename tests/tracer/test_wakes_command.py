"""``temper wakes`` against an agent that only looks like one."""

import json
import threading

import pytest
from attrs import define, field
from click.testing import CliRunner

from temper_core import Endpoint
from temper_plugin_tracer.command import command
from tests.core.server.conftest import start_server
from tests.core.server.fake_view import FakeView


def party(tid, comm, pod="", layer=""):
    return {"tid": tid, "comm": comm, "process": comm, "pod": pod, "layer": layer}


def a_window(at="2026-11-21T09:00:01.000Z", **changes):
    web, db = party(41, "nginx", "shop/web", "high"), party(42, "mysqld", "shop/db")
    return {
        "at": at,
        "length_s": 0.25,
        "every_s": 20.0,
        "switches_per_s": 120_000.0,
        "lost": 0,
        "edges": [
            {"waker": web, "wakee": db, "wakes": 500},
            {"waker": party(0, ""), "wakee": web, "wakes": 20},
        ],
        "blockings": [{"waiter": web, "runner": party(0, ""), "waits": 2, "waited_s": 0.0125}],
        "waits": [
            {
                "subject": "node",
                "waits": 4,
                "total_s": 0.004,
                "p50_under_us": 512,
                "p99_under_us": None,
                "counts": [4],
            }
        ],
        **changes,
    }


@define(eq=False)
class FakeWakes:
    """What an agent answers at ``/wakes``; ``wanted`` are the seconds asked for."""

    wanted: list = field(factory=list)
    window: dict | None = None
    reason: str = ""
    next_window: dict | None = None

    def document(self, _request=None):
        return {"is_on": bool(self.wanted), "reason": self.reason, "window": self.window}

    def begin(self, request):
        self.wanted.append(request.json()["seconds"])
        if self.next_window is not None:
            threading.Timer(0.2, setattr, (self, "window", self.next_window)).start()
        return self.document()

    def endpoints(self):
        return (
            Endpoint("get-wakes", "GET", "/wakes", "The last window.", self.document),
            Endpoint("watch-wakes", "PUT", "/wakes", "Watch.", self.begin, acts=True),
        )


@pytest.fixture
def view():
    return FakeWakes()


@pytest.fixture
def settings_path(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(
        f'run_directory = "{tmp_path}/run"\n'
        f'[server]\nlisten = ""\nsocket = "{tmp_path}/run/agent.sock"\n'
    )
    return path


@pytest.fixture
def agent(view, tmp_path):
    served = FakeView(served=[("tracer", endpoint) for endpoint in view.endpoints()])
    running = start_server(served, tmp_path, None)
    yield running
    running.close()


@pytest.fixture
def temper(settings_path):
    """Run the command with the settings of the agent."""

    def run(*arguments):
        return CliRunner().invoke(command, [*arguments, "--settings", str(settings_path)])

    return run


@pytest.fixture
def comes(view):
    """Have a window come as soon as somebody has asked for one."""

    def once(**changes):
        view.next_window = a_window(**changes)

    return once


def rows_of(output, title):
    lines = output.split(title, 1)[1].splitlines()[2:]
    return [line.split() for line in lines]


@pytest.mark.usefixtures("agent")
def test_the_next_window_is_shown_with_its_edges_blockings_and_waits(temper, view, comes):
    comes()

    result = temper()

    assert result.exit_code == 0, result.output
    assert view.wanted == [60.0]
    edges = rows_of(result.stdout, "wakers and wakees")
    assert edges[0] == ["nginx[41]", "shop/web", "(high)", "mysqld[42]", "shop/db", "500", "2000"]
    assert edges[1][0] == "(interrupt)"
    blockings = rows_of(result.stdout, "waiters and runners (1 ms or more)")
    assert blockings[0] == ["nginx[41]", "shop/web", "(high)", "(idle)", "2", "12.500"]
    assert rows_of(result.stdout, "waits for a CPU")[0] == ["node", "4", "1.000", "0.512", "-"]
    assert result.stdout.startswith("window of 250 ms up to 2026-11-21T09:00:01.000Z, every 20 s")


@pytest.mark.usefixtures("agent")
def test_an_older_window_is_not_taken_for_the_one_that_was_asked_for(temper, view, comes):
    view.window = a_window("2026-11-21T08:00:00.000Z")
    comes(lost=7)

    result = temper("--seconds", "30", "--output", "json")

    document = json.loads(result.stdout)
    assert document["window"] == a_window(lost=7)
    assert view.wanted == [30.0]
    assert "windows come every 20 s" in result.stderr


@pytest.mark.usefixtures("agent")
def test_edges_without_room_are_said(temper, comes):
    comes(lost=7)

    assert "7 edges found no room" in temper().stdout


@pytest.mark.usefixtures("agent")
def test_only_so_many_rows_are_shown(temper, comes):
    comes()

    shown = temper("--top", "1").stdout

    assert "nginx[41]" in shown
    assert "(interrupt)" not in shown


FILTERS = {
    "a pod": (("--pod", "shop/db"), (1, 0, 0)),
    "part of a pod": (("--pod", "web"), (2, 1, 0)),
    "a thread": (("--thread", "mysql"), (1, 0, 0)),
    "both": (("--pod", "web", "--thread", "nginx"), (2, 1, 0)),
    "both, of two threads": (("--pod", "web", "--thread", "mysqld"), (0, 0, 0)),
    "the node": (("--pod", "node"), (0, 0, 1)),
}


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize("kind", FILTERS)
def test_only_rows_of_the_pod_and_the_thread_are_shown(temper, comes, kind):
    options, counts = FILTERS[kind]
    comes()

    window = json.loads(temper(*options, "--output", "json").stdout)["window"]

    assert tuple(len(window[key]) for key in ("edges", "blockings", "waits")) == counts


@pytest.mark.usefixtures("agent")
def test_what_is_in_the_way_is_said_with_the_exit_code_of_the_machine(temper, view):
    view.reason = "no CAP_BPF"

    result = temper()

    assert str(result.exception) == "wake-ups are not watched: no CAP_BPF"
    assert result.exception.exit_code == 3


@pytest.mark.usefixtures("agent")
def test_a_window_that_does_not_come_in_time_is_said(temper):
    result = temper("--seconds", "1")

    assert str(result.exception) == "no window came within 1 s; give it more --seconds"


@pytest.mark.parametrize("seconds", ["0.5", "3601"])
def test_seconds_that_the_agent_would_not_take_are_refused_before_it_is_asked(temper, seconds):
    result = temper("--seconds", seconds)

    assert result.exit_code == 2
    assert "is not in the range 1.0<=x<=3600.0" in result.output


def test_without_an_agent_that_is_said(temper):
    result = temper()

    assert "no agent answers" in str(result.exception)
    assert result.exception.exit_code == 3


@pytest.mark.usefixtures("agent")
def test_what_a_process_calls_itself_does_not_steer_the_terminal(temper, comes):
    comes(edges=[{"waker": party(1, "\x1b[2Jx"), "wakee": party(2, "[red]y[/]"), "wakes": 1}])

    shown = temper().stdout

    assert "\x1b" not in shown
    assert "[red]y[/][2]" in shown
