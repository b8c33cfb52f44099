"""Files that ``--save`` writes: whole or not at all, and never through a link."""

import os

import pytest

from temper_core import InputError
from temper_core.console import save_text


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "plot.svg"
    path.write_text("before")
    known = path.stat().st_ino

    save_text(path, "after")

    assert path.read_text() == "after"
    assert path.stat().st_ino != known
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_is_refused_and_its_target_kept(tmp_path):
    target, link = tmp_path / "target", tmp_path / "plot.svg"
    target.write_text("kept")
    link.symlink_to(target)

    with pytest.raises(InputError, match="not a regular file"):
        save_text(link, "written")

    assert target.read_text() == "kept"


def test_a_pipe_is_refused_at_once(tmp_path):
    pipe = tmp_path / "plot.svg"
    os.mkfifo(pipe)

    with pytest.raises(InputError, match="not a regular file"):
        save_text(pipe, "written")


def test_what_cannot_be_written_leaves_the_file_before(tmp_path):
    path = tmp_path / "plot.svg"
    path.write_text("before")

    with pytest.raises(UnicodeEncodeError):
        save_text(path, "half \ud800")

    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]


def test_a_directory_that_is_missing_is_named(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        save_text(tmp_path / "none" / "plot.svg", "text")
