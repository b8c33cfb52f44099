"""A child that a plugin forks keeps no listening socket and no lock of the agent."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from temper_core.events.event_file import EventFile
from temper_core.http.address import Address
from temper_core.http.listener import listen_on
from temper_core.server.sockets import bind_local

KILLED = """
import json, os, signal, sys, time
from pathlib import Path
from temper_core.events.event_file import EventFile
from temper_core.http.address import Address
from temper_core.http.listener import listen_on
from temper_core.server.sockets import bind_local
tcp = listen_on(Address("127.0.0.1", 0), "a test")
local = bind_local(Path(sys.argv[1]))
events = EventFile(Path(sys.argv[1]).with_name("events.jsonl"))
events.hold()
child = os.fork()
if child == 0:
    os.close(1)
    time.sleep(600)
print(json.dumps([child, tcp.getsockname()[1]]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def left_behind(tmp_path):
    """Return the path and the port of an agent that was killed, and whose child lives."""
    path = tmp_path / "agent.sock"
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, check=False
    )
    child, port = json.loads(ran.stdout)
    yield path, port
    os.kill(child, 0)  # it outlived the test
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def test_the_next_agent_listens_on_the_same_socket_and_port(left_behind):
    path, port = left_behind

    local, tcp = bind_local(path), listen_on(Address("127.0.0.1", port), "a test")

    assert tcp.getsockname()[1] == port
    local.socket.close()
    tcp.close()


def test_the_next_agent_holds_the_same_state(left_behind):
    path, _ = left_behind
    events = EventFile(path.with_name("events.jsonl"))

    events.hold()

    assert events.append([])
    events.close()
