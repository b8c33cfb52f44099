"""The kubelet's read-only port, on which any process of the node may listen."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest

from temper_plugin_kubernetes import kubelet as kubelet_module
from temper_plugin_kubernetes.kubelet import KubeletView

PIECES = 1000


@pytest.fixture
def trickling():
    """A listener that sends the beginning of a list, and then a blank now and then."""
    sent, is_over = [], threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"items": [')
                for _ in range(PIECES):
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return
                    sent.append(1)
                    is_over.wait(0.02)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", sent
        is_over.set()
        thread.join()


def test_an_answer_that_trickles_is_given_up(trickling, monkeypatch):
    monkeypatch.setattr(kubelet_module, "ANSWER_S", 0.5)
    url, sent = trickling

    view = KubeletView(url)

    assert view.look().pods == ()
    assert not view.has_answered
    assert len(sent) < PIECES


PODS = json.dumps({"items": [{"metadata": {"name": "own", "namespace": "a", "uid": "u"}}]})
SERVES = f"""
import encodings.idna, http.server, os, sys
class Kubelet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write({PODS.encode()!r})
if len(sys.argv) > 1:
    os.setuid(int(sys.argv[1]))
server = http.server.HTTPServer(("127.0.0.1", 0), Kubelet)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture
def serve():
    """Start a program that answers as a kubelet, as another user if one is given."""
    started = []

    def start(*user):
        command = [sys.executable, "-c", SERVES, *user]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_listener_of_root_or_of_the_agents_user_is_asked(serve):
    view = KubeletView(f"http://127.0.0.1:{serve()}")

    view.look()

    assert (view.has_answered, view.distrust) == (True, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
def test_a_listener_of_another_user_is_not_believed(serve):
    port = serve("65534")
    view = KubeletView(f"http://127.0.0.1:{port}")

    assert view.look().pods == ()
    assert not view.has_answered
    assert view.distrust == f"user 65534 listens on port {port}, who is not root"


def test_without_a_listener_nobody_is_asked_who_may_come_meanwhile():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    view = KubeletView(f"http://localhost:{port}")

    view.look()

    assert view.distrust == f"nothing of this network namespace listens on port {port}"
