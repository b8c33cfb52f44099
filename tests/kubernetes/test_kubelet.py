"""The kubelet's read-only port, on which any process of the node may listen."""

import socket
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
