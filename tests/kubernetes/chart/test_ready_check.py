"""What `helm test` runs, run here."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class _Agent(BaseHTTPRequestHandler):
    def do_GET(self):
        status = self.server.status if self.path == "/readyz" else 404
        self.send_response(status)
        self.end_headers()
        self.wfile.write(self.server.refusal if status != 200 else b"{}")

    def log_message(self, *_):
        pass


@pytest.fixture
def agent():
    """A server that answers like an agent, of whatever readiness the test gives it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Agent)
    server.refusal = b'{"error": "safe mode: requested"}'
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "ends", "says"),
    [(200, 0, "127.0.0.1 is ready"), (503, 1, '127.0.0.1 is not ready: {"error": "safe mode')],
)
def test_the_release_test_asks_the_agents_whether_they_are_ready(helm, agent, status, ends, says):
    pod = helm.render().get("Pod", "temper-test-ready")["spec"]["containers"][0]
    agent.status = status

    done = _asked(pod, "127.0.0.1", agent.server_port)

    assert (done.returncode, done.stdout.startswith(says)) == (ends, True), done


def test_what_answers_in_place_of_an_agent_writes_one_line_without_control_characters(helm, agent):
    pod = helm.render().get("Pod", "temper-test-ready")["spec"]["containers"][0]
    agent.status = 503
    agent.refusal = b"\x1b]0;owned\x07\n127.0.0.9 is ready\xe2\x80\xae" + b"x" * 1_000_000

    done = _asked(pod, "127.0.0.1", agent.server_port)

    assert done.returncode == 1
    assert done.stdout.startswith("127.0.0.1 is not ready: \\x1b]0;owned\\x07\\n127.0.0.9")
    assert (done.stdout.count("\n"), done.stdout.isascii()) == (1, True)
    assert len(done.stdout) < 10_000


def test_the_release_test_fails_where_no_agent_is(helm):
    pod = helm.render().get("Pod", "temper-test-ready")["spec"]["containers"][0]

    done = _asked(pod, "temper-agent.invalid", 9100)

    assert done.returncode == 1
    assert "temper-agent.invalid: no agent is there" in done.stdout
    assert pod["args"] == ["temper-agent.temper.svc", "9100"]


def _asked(pod, host, port):
    """Run the pod's own command with this interpreter in place of the image's."""
    _, *command = pod["command"]
    return subprocess.run(
        [sys.executable, *command, host, str(port)], capture_output=True, text=True, check=False
    )
