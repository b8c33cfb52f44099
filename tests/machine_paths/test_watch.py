"""The guard of the machine's own places, in this process and in those that a test starts."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("open('/run/temper/engine.pid')", "open /run/temper/engine.pid"),
        ("os.mkdir(b'/var/lib/temper')", "os.mkdir /var/lib/temper"),
        (
            "pathlib.Path('/run/x/../temper/agent.lock').unlink()",
            "os.remove /run/temper/agent.lock",
        ),
        ("socket.socket(socket.AF_UNIX).connect('/run/temper/agent.sock')", "socket.connect /run/"),
        ("socket.socket().connect(('127.0.0.1', 9100))", "socket.connect port 9100"),
    ],
)
def test_a_child_that_touches_one_is_refused_and_noted(touches, statement, told):
    program = f"import os, pathlib, socket\n{statement}"
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )

    [noted] = touches.take()

    assert "PermissionError" in done.stderr
    assert noted.startswith(told)


def test_so_is_this_process(touches):
    with socket.socket(socket.AF_UNIX) as asking, pytest.raises(PermissionError):
        asking.connect("/run/temper/agent.sock")

    assert len(touches.take()) == 1


def test_a_test_fails_over_what_it_touched(touches, tmp_path):
    with pytest.raises(PermissionError):
        Path("/var/lib/temper/safe-mode").read_text()

    with pytest.raises(AssertionError, match="open /var/lib/temper/safe-mode"):
        touches.check()
    (tmp_path / "temper").mkdir()
    touches.check()
