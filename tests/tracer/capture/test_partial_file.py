"""The file that a fetched trace is written to."""

import os
import stat
import threading
from contextlib import suppress

import pytest

from temper_core import InputError
from temper_plugin_tracer.trace.commands.partial_file import written_whole

CONTENT = b"a trace" * 10_000


def write(out):
    with written_whole(out) as file:
        file.write(CONTENT)


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


def test_nothing_stays_when_the_block_raises(tmp_path):
    with suppress(ZeroDivisionError), written_whole(tmp_path / "out") as file:
        file.write(CONTENT)
        raise ZeroDivisionError

    assert not list(tmp_path.iterdir())
