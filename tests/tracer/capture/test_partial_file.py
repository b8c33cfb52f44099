"""The file that a fetched trace is written to."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from temper_core import InputError
from temper_plugin_tracer.trace.commands.partial_file import refuse_unwritable, written_whole

CONTENT = b"a trace" * 10_000


def write(out):
    with written_whole(out) as file:
        file.write(CONTENT)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a pipe to another user")
def test_a_pipe_of_another_user_is_refused(tmp_path):
    out = tmp_path / "pipe"
    os.mkfifo(out)
    os.chown(out, 65534, 65534)

    with pytest.raises(InputError, match="belongs to user 65534"), written_whole(out):
        pass


def test_a_file_takes_its_place_when_it_is_whole(tmp_path):
    out = tmp_path / "out.pftrace"
    out.write_bytes(b"before")

    with written_whole(out) as file:
        file.write(CONTENT)
        assert out.read_bytes() == b"before"

    assert out.read_bytes() == CONTENT
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


@pytest.mark.parametrize("link", [False, True])
def test_a_device_keeps_its_place(tmp_path, link):
    """As ``--out /dev/null``. The node is the test's own where root may make one."""
    out = tmp_path / "null"
    if link:
        out.symlink_to("/dev/null")
    else:
        try:
            os.mknod(out, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            out.open("wb").close()
        except OSError as error:
            pytest.skip(f"no device can be made here: {error}")

    write(out)

    assert stat.S_ISCHR(out.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["null"]


def test_the_reader_of_a_pipe_gets_all(tmp_path):
    out = tmp_path / "pipe"
    os.mkfifo(out)
    read = []
    reader = threading.Thread(target=lambda: read.append(out.read_bytes()), daemon=True)
    reader.start()

    write(out)

    reader.join(30)
    assert read == [CONTENT]


@pytest.mark.parametrize("target", ["precious", "missing"])
def test_a_link_to_a_file_is_refused(tmp_path, target):
    (tmp_path / "precious").write_bytes(b"precious")
    out = tmp_path / "out"
    out.symlink_to(tmp_path / target)

    with pytest.raises(InputError, match="is a link; name the file itself"):
        write(out)

    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert not (tmp_path / "missing").exists()


def test_a_directory_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match="directory"):
        write(tmp_path)


def test_the_question_leaves_everything_as_it_is(tmp_path):
    out = tmp_path / "out.pftrace"

    refuse_unwritable(out)

    assert not list(tmp_path.iterdir())
    out.write_bytes(b"before")
    refuse_unwritable(out)
    assert out.read_bytes() == b"before"


def test_the_question_opens_no_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    refuse_unwritable(tmp_path / "pipe")  # opening it would wait for a reader


def test_nothing_stays_when_the_block_raises(tmp_path):
    with suppress(ZeroDivisionError), written_whole(tmp_path / "out") as file:
        file.write(CONTENT)
        raise ZeroDivisionError

    assert not list(tmp_path.iterdir())


EXCHANGE = """
import ctypes, sys
one, other = map(str.encode, sys.argv[1:])
AT_FDCWD, RENAME_EXCHANGE = -100, 2  # include/uapi/linux/fcntl.h, include/uapi/linux/fs.h
while ctypes.CDLL(None).renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0:
    pass
"""


@contextmanager
def exchanged_all_the_time(one, other) -> Iterator[None]:
    """Let two names change places, as the owner of their directory may."""
    with subprocess.Popen([sys.executable, "-c", EXCHANGE, one, other]) as exchanging:
        try:
            yield
            assert exchanging.poll() is None
        finally:
            exchanging.kill()


def test_a_pipe_that_is_exchanged_for_a_link_leads_to_no_other_file(tmp_path):
    precious, out, link = (tmp_path / name for name in ("precious", "out", "link"))
    precious.write_bytes(b"precious")
    os.mkfifo(out)
    link.symlink_to(precious)
    reader = os.open(out, os.O_RDWR | os.O_NONBLOCK)  # or opening it would wait for a reader

    written = refused = 0
    with exchanged_all_the_time(out, link):
        while written < 50 or refused < 50:
            try:
                with written_whole(out) as file:
                    file.write(b"t")
                written += 1
            except InputError:
                refused += 1

    os.close(reader)
    assert precious.read_bytes() == b"precious"
