"""Files that a user names, made by somebody else."""

import gzip
import os
import threading

import pytest

from temper_core import InputError, UnpackedFile, open_file

EMPTY = gzip.compress(b"", mtime=0)
NOTHING = b"\x00\x00\x00\xff\xff"
"""A block of deflate without contents (RFC 1951, 3.2.4)."""


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (EMPTY * 100_000, UnpackedFile.read),
        (EMPTY * 100_000, UnpackedFile.readline),
        (gzip.compress(b"x") * 100_000, UnpackedFile.read),
        (EMPTY[:10] + NOTHING * 500_000, UnpackedFile.readline),
        (EMPTY[:3] + b"\x08" + EMPTY[4:10] + b"x" * 2_000_000, UnpackedFile.readline),
    ],
    ids=["empty members", "by lines", "members of a byte", "empty blocks", "an endless name"],
)
def test_a_packed_file_that_is_larger_than_its_contents_is_refused(tmp_path, content, read):
    path = tmp_path / "x.gz"
    path.write_bytes(content)

    with open_file(path) as file, pytest.raises(gzip.BadGzipFile, match="larger than its contents"):
        read(UnpackedFile(file))


def test_files_of_many_members_and_of_what_cannot_be_packed_are_read(tmp_path):
    random, lines = os.urandom(4 << 20), b"a line of some length and no more\n" * 5
    path = tmp_path / "x.gz"
    path.write_bytes(EMPTY * 1000 + gzip.compress(random) + gzip.compress(lines) * 10_000)

    with open_file(path) as file:
        unpacked = UnpackedFile(file)
        first = unpacked.read(len(random))
        rest = list(iter(unpacked.readline, b""))

    assert first == random
    assert b"".join(rest) == lines * 10_000


@pytest.mark.parametrize("name", ["pipe", "/dev/null", "."])
def test_a_file_of_another_kind_is_refused_at_once(pipe, name):
    with pytest.raises(InputError, match=r"is not a regular file|Is a directory"):
        open_file(pipe.parent / name)


def test_a_pipe_without_a_writer_is_refused_after_a_while(pipe):
    with pytest.raises(InputError, match=r"nothing was written within 0\.1 s"):
        open_file(pipe, pipe_wait_s=0.1)


def test_a_pipe_is_read_to_its_end(pipe):
    parts = [b"x" * 100_000] * 5
    writing = threading.Thread(target=lambda: pipe.write_bytes(b"".join(parts)))
    writing.start()

    with open_file(pipe, pipe_wait_s=20) as file:
        content = file.read()
    writing.join()

    assert content == b"".join(parts)
