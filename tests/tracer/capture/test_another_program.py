"""What a program in the agent's place may have the commands of ``temper trace`` do.

It is a fake, because no agent sends more than it has, or records without end.
"""

import base64
import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from temper_core import MachineError
from temper_core.console import read_settings
from temper_plugin_tracer.trace.commands.agent_traces import LARGEST_TRACE_BYTES, copy
from tests.patience import PATIENCE_S
from tests.tracer.capture.conftest import until

TEMPER = Path(sys.executable).with_name("temper")
CAPTURE = "20261125-000000-0000"
PART_BYTES = 4_096


@contextmanager
def answering(tmp_path, documents, asked=None):
    """Yield the path of settings whose agent answers with *documents*, the last again and again.

    The methods of its requests are added to *asked*.
    """

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "temper/1", ""

        def _answer(self):
            if asked is not None:
                asked.append(self.command)
            self.rfile.read(int(self.headers.get("content-length") or 0))
            document = documents.pop(0) if len(documents) > 1 else documents[0]
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def __getattr__(self, name):
            if name in {"do_GET", "do_POST", "do_DELETE"}:
                return self._answer
            raise AttributeError(name)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = tmp_path / "agent.toml"
        path.write_text(
            f'run_directory = "{tmp_path}/run"\n[server]\n'
            f'listen = "127.0.0.1:{server.server_address[1]}"\n'
        )
        yield path
        server.shutdown()


def part(content, size):
    return {"content": base64.b64encode(content).decode(), "bytes": size}


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([(b"x" * PART_BYTES, LARGEST_TRACE_BYTES + 1)], "has a trace of 1024 MiB"),
        ([(b"x" * PART_BYTES, 3 * PART_BYTES), (b"x", 1 << 50)], "bytes, and has"),
        ([(b"x" * PART_BYTES, PART_BYTES + 1)], "sends more than the 4097 bytes"),
        ([(b"x" * PART_BYTES, PART_BYTES + 1), (b"", PART_BYTES + 1)], "after 4096 of 4097 bytes"),
    ],
)
def test_no_more_is_written_than_the_agent_announced(tmp_path, parts, message):
    written = bytearray()

    with (
        answering(tmp_path, [part(*each) for each in parts]) as settings,
        pytest.raises(MachineError, match=message),
    ):
        copy(CAPTURE, written.extend, read_settings(settings))

    assert len(written) <= PART_BYTES


def test_a_trace_comes_in_parts(tmp_path):
    written = bytearray()

    with answering(tmp_path, [part(b"one", 6), part(b"two", 6)]) as settings:
        size = copy(CAPTURE, written.extend, read_settings(settings))

    assert (size, bytes(written)) == (6, b"onetwo")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_a_capture_that_never_ends(tmp_path, number):
    entry, asked = {"id": CAPTURE, "state": "recording", "elapsed_s": 1, "remaining_s": 1}, []
    with answering(tmp_path, [{"traces": [entry], **entry}], asked) as settings:
        command = [TEMPER, "trace", "capture", "--seconds", "1", "--settings", settings]
        running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            for method in ("GET", "DELETE"):
                until(lambda method=method: method in asked)
                running.send_signal(number)
            assert running.wait(timeout=PATIENCE_S)
        finally:
            running.kill()
            running.wait()
