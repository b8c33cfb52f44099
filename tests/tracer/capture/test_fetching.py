"""What a program in the agent's place may have ``temper trace fetch`` write."""

import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from temper_core import MachineError
from temper_core.console import read_settings
from temper_plugin_tracer.trace.commands.agent_traces import LARGEST_TRACE_BYTES, copy

PART_BYTES = 4_096


@contextmanager
def sending(tmp_path, parts):
    """Yield the settings of an agent that answers with *parts*: content and size, the last again.

    A fake, because no agent sends more than it has.
    """

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "temper/1", ""

        def do_GET(self):
            content, size = parts.pop(0) if len(parts) > 1 else parts[0]
            document = {"content": base64.b64encode(content).decode(), "bytes": size}
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = tmp_path / "agent.toml"
        path.write_text(
            f'run_directory = "{tmp_path}/run"\n[server]\n'
            f'listen = "127.0.0.1:{server.server_address[1]}"\n'
        )
        yield read_settings(path)
        server.shutdown()


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

    with sending(tmp_path, parts) as settings, pytest.raises(MachineError, match=message):
        copy("20261125-000000-0000", written.extend, settings)

    assert len(written) <= PART_BYTES


def test_a_trace_comes_in_parts(tmp_path):
    written = bytearray()

    with sending(tmp_path, [(b"one", 6), (b"two", 6)]) as settings:
        size = copy("20261125-000000-0000", written.extend, settings)

    assert (size, bytes(written)) == (6, b"onetwo")
