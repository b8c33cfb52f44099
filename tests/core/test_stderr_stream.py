"""Lines of the log whose reader has stalled."""

import fcntl
import json
import os
import pty
import socket
import termios
import time
from pathlib import Path

import pytest

from temper_core import stderr_stream
from temper_core.stderr_stream import StderrStream, unblocking

LINE = "x" * 999 + "\n"
MOST_S = 30.0
"""A write that waits for its reader would never end."""


def note(lines):
    return json.dumps({"lines": lines}) + "\n"


def a_pipe():
    reader, writer = os.pipe()
    return reader, writer


def a_socket():
    """As the journal's."""
    reader, writer = socket.socketpair()
    return reader.detach(), writer.detach()


def a_terminal():
    reader, writer = pty.openpty()
    attributes = termios.tcgetattr(writer)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(writer, termios.TCSANOW, attributes)
    return reader, writer


@pytest.fixture(params=[a_pipe, a_socket, a_terminal])
def ends(request):
    reader, writer = request.param()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def read_all(reader):
    os.set_blocking(reader, False)
    content = b""
    while True:
        try:
            part = os.read(reader, 65536)
        except BlockingIOError:
            return content.decode()
        content += part


def test_lines_are_written_at_once_while_they_are_read(ends):
    reader, writer = ends
    stream = StderrStream(writer, note)

    stream.write("é\n")

    assert read_all(reader) == "é\n"


def test_a_reader_that_stalls_keeps_no_writer_and_gets_whole_lines_afterwards(ends):
    reader, writer = ends
    stream = StderrStream(writer, note)
    begun = time.monotonic()

    for _ in range(2_000):
        stream.write(LINE)

    assert time.monotonic() - begun < MOST_S
    seen = read_all(reader)
    for _ in range(2_000):  # the rest of a line, and the note, may take more than one look
        stream.write("last\n")
        seen += read_all(reader)
        if '"lines"' in seen:
            break
    *lines, _ = seen.split("\n")
    assert {line for line in lines if line.startswith("x")} == {LINE.strip()}
    (noted,) = (json.loads(line)["lines"] for line in lines if line.startswith("{"))
    assert noted == 2_000 - sum(line.startswith("x") for line in lines)
    assert lines[-1] == "last"


def test_only_the_first_line_waits_for_a_reader(monkeypatch):
    monkeypatch.setattr(stderr_stream, "WAIT_S", 0.2)
    reader, writer = os.pipe()
    stream = StderrStream(writer, note)
    begun = time.monotonic()

    for _ in range(1_000):
        stream.write(LINE)

    assert 0.2 <= time.monotonic() - begun < MOST_S
    os.close(reader)
    stream.write("nobody reads that any more\n")
    os.close(writer)


def test_a_full_disk_raises_nothing():
    with Path("/dev/full").open("wb") as full:
        stream = StderrStream(full.fileno(), note)

        assert stream.write(LINE) == len(LINE)


def test_the_given_descriptor_still_waits(ends):
    """Other processes share its file."""
    _, writer = ends

    os.close(unblocking(writer))

    assert not fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK
