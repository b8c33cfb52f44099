"""The directory of the sockets of Perfetto's services."""

import os
import subprocess
import tempfile

import pytest

from temper_plugin_tracer.capture.whole_node.socket_directory import (
    PREFIX,
    make_socket_directory,
    remove_socket_directory,
)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def ended_pid():
    with subprocess.Popen(["true"]) as child:
        child.wait()
    return child.pid


def test_no_other_user_may_enter_it(temporary):
    path = make_socket_directory()

    assert path.stat().st_mode & 0o777 == 0o700
    (path / "consumer").touch()
    remove_socket_directory(path)
    assert list(temporary.iterdir()) == []


def test_those_of_killed_processes_are_removed_and_no_others(temporary):
    left = temporary / f"{PREFIX}{ended_pid()}-abc"
    used = temporary / f"{PREFIX}{os.getppid()}-abc"
    other = temporary / f"{PREFIX}notes"
    for path in (left, used, other):
        path.mkdir()
        (path / "consumer").touch()

    made = make_socket_directory()

    assert set(temporary.iterdir()) == {used, other, made}


def test_a_link_is_not_followed(temporary):
    kept = temporary / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (temporary / f"{PREFIX}{ended_pid()}-abc").symlink_to(kept)

    make_socket_directory()

    assert (kept / "file").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory to another user")
def test_one_of_another_user_is_left_alone(temporary):
    foreign = temporary / f"{PREFIX}{ended_pid()}-abc"
    foreign.mkdir()
    os.chown(foreign, 65534, 65534)

    make_socket_directory()

    assert foreign.exists()
