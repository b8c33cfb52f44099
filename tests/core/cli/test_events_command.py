import json
import socket
import threading
from contextlib import suppress

import pytest

from temper_core.cli import events
from temper_core.client import stream_agent
from temper_core.errors import MachineError


@pytest.fixture
def happened(view):
    view.happened.record("agent_started")
    view.happened.record("safe_mode_requested", "cli", "a drill")
    return view.happened


class Streaming:
    """An agent on a local socket that answers each request with the next of *answers*."""

    def __init__(self, path):
        self.answers = []
        self.asked = []
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._serving = threading.Thread(target=self._serve)
        self._serving.start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                if head := connection.recv(4096):  # else it only knocked
                    self.asked.append(head.split(b" ")[1].decode())
                    with suppress(OSError):  # the client has seen enough
                        connection.sendall(self.answers.pop(0))

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._serving.join()


@pytest.fixture
def streaming(node):
    made = Streaming(node.socket)
    yield made
    made.close()


def answer(body, media_type="text/event-stream", status="200 OK"):
    head = f"HTTP/1.1 {status}\r\nserver: temper/0\r\ncontent-type: {media_type}\r\n\r\n"
    return head.encode() + body


def listed(last, *found):
    body = json.dumps({"schema_version": 1, "last": last, "events": list(found)})
    return answer(body.encode(), "application/json")


def streamed(*numbers):
    lines = [json.dumps({"number": each, "at": 1.0, "kind": f"k{each}"}) for each in numbers]
    return answer(b": here\n\n" + "".join(f"id: 1\ndata: {line}\n\n" for line in lines).encode())


@pytest.mark.usefixtures("agent", "happened")
def test_events_are_shown_as_a_table_and_as_json(temper):
    table = temper(events.command)
    document = temper(events.command, "--output", "json", "--since", "1", "--limit", "5")

    assert table.exit_code == 0
    assert table.output.splitlines()[2].split()[2:5] == ["warning", "safe_mode_requested", "cli"]
    assert [each["number"] for each in json.loads(document.output)["events"]] == [2]


@pytest.mark.usefixtures("agent", "happened")
def test_kinds_may_be_chosen_and_none_is_said(temper):
    chosen = temper(events.command, "--kind", "agent_started", "--kind", "agent_stopped")
    none = temper(events.command, "--kind", "trial_began")

    assert len(chosen.output.splitlines()) == 2
    assert none.output == "no events\n"


@pytest.mark.usefixtures("agent")
def test_a_since_that_makes_no_sense_is_the_callers_mistake(temper):
    result = temper(events.command, "--since", "yesterday")

    assert result.exception.exit_code == 2


def test_without_an_agent_it_says_so(temper):
    assert temper(events.command).exception.exit_code == 3


def test_following_shows_what_was_asked_for_then_what_comes_over_broken_streams(
    temper, streaming, monkeypatch
):
    monkeypatch.setattr(events, "AGAIN_S", 0.01)
    old = {"number": 3, "at": 1.0, "kind": "k3"}
    refused = answer(b'{"error": "too many streams"}', "application/json", "503 Busy")
    streaming.answers = [listed(3, old), streamed(4, 5), streamed(), streamed(6), refused]

    result = temper(events.command, "--follow", "--since", "2", "--output", "json")

    assert [json.loads(line)["number"] for line in result.output.splitlines()] == [3, 4, 5, 6]
    assert "too many streams" in str(result.exception)
    assert [path.split("since=")[1] for path in streaming.asked] == ["2", "3", "5", "5", "6"]


def test_following_passes_the_kinds_on_and_shows_lines(temper, streaming, monkeypatch):
    monkeypatch.setattr(events, "AGAIN_S", 0.01)
    odd = b'data: {"number": 4, "at": 1.0, "kind": "k4", "subject": "a\\u001b[2J"}\n\n'
    streaming.answers = [listed(3), answer(odd), answer(b"data: 7\n\n")]

    result = temper(events.command, "--follow", "--kind", "k4")

    assert "k4  a\N{REPLACEMENT CHARACTER}[2J" in result.output
    assert "malformed event" in str(result.exception)
    assert all("kind=k4" in path for path in streaming.asked)


@pytest.mark.parametrize(
    "body", [b"[]", b'{"events": 7}', b'{"events": [7], "last": 1}', b'{"events": [], "last": "x"}']
)
def test_an_answer_of_something_else_is_no_crash(temper, streaming, body):
    streaming.answers = [answer(body, "application/json")]

    result = temper(events.command)

    assert isinstance(result.exception, MachineError)


def test_a_line_without_end_is_not_gathered_without_end(node, streaming):
    streaming.answers = [answer(b"data: " + b"x" * (3 << 20))]

    with pytest.raises(MachineError, match="broke off"):
        list(stream_agent("/events/stream", settings=node.settings))


def test_another_program_in_the_agents_place_is_named(node, streaming):
    streaming.answers = [b"HTTP/1.1 200 OK\r\nserver: other\r\ncontent-length: 0\r\n\r\n"]

    with pytest.raises(MachineError, match="another program answers there"):
        list(stream_agent("/events/stream", settings=node.settings))
