"""The end of a command that an observation or a benchmark started."""

import ctypes
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_plugin_trainer.training import started_command
from temper_plugin_trainer.training.started_command import ended, started
from tests.patience import PATIENCE_S

PR_SET_CHILD_SUBREAPER = 36
# The child outlives the command, and tells what is left of it some time later.
SURVIVOR = """
import os, pathlib, signal, sys, time
told, leader = pathlib.Path(sys.argv[1]), os.getpid()
def state():
    try: return pathlib.Path(f"/proc/{leader}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError: return "reaped"
def end(*_):
    while state() not in ("Z", "reaped"): time.sleep(0.01)
    time.sleep(0.3)
    told.write_text(state())
    os._exit(0)
if not os.fork():
    signal.signal(signal.SIGTERM, end)
    pathlib.Path(f"{told}.pid").write_text(f"{os.getpid()} ")
    while True: time.sleep(0.01)
time.sleep(300)
"""
IGNORANT = SURVIVOR.replace("signal.SIGTERM, end", "signal.SIGTERM, signal.SIG_IGN")
# The zombie child stays in the group for want of one who reaps it.
UNREAPED = "import os, time\nif not os.fork(): os._exit(0)\ntime.sleep(300)"


def line(script, *words):
    return shlex.join([sys.executable, "-c", script, *map(str, words)])


def eventually(holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def child_of(told):
    """Return the id of the child once it handles signals."""
    path = Path(f"{told}.pid")
    eventually(lambda: path.exists() and path.read_text().endswith(" "))
    return int(path.read_text())


def lives(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


def test_the_number_of_a_command_is_kept_until_its_group_has_ended(tmp_path):
    told = tmp_path / "told"

    with started(line(SURVIVOR, told)) as pid:
        child_of(told)

    assert told.read_text() == "Z"
    assert not Path(f"/proc/{pid}").exists()


def test_a_child_that_ignores_its_end_is_killed_after_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(started_command, "END_WITHIN_S", 0.5)

    with started(line(IGNORANT, tmp_path / "told")) as pid:
        child = child_of(tmp_path / "told")

    eventually(lambda: not lives(child))
    assert not Path(f"/proc/{pid}").exists()


@pytest.fixture
def no_reaper():
    """Adopt orphans, and reap none of them."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    yield
    libc.prctl(PR_SET_CHILD_SUBREAPER, 0)


@pytest.mark.usefixtures("no_reaper")
def test_a_zombie_of_the_group_does_not_delay_the_end(monkeypatch):
    monkeypatch.setattr(started_command, "END_WITHIN_S", PATIENCE_S)
    began = time.monotonic()

    with started(line(UNREAPED)) as pid:
        children = Path(f"/proc/{pid}/task/{pid}/children")
        eventually(lambda: children.read_text().split())
        zombie = int(children.read_text())
        eventually(lambda: not lives(zombie))

    assert time.monotonic() - began < PATIENCE_S / 2
    assert os.waitpid(zombie, 0) == (zombie, 0)


def test_a_command_that_has_ended_is_reaped_without_delay():
    began = time.monotonic()

    with started("true") as pid:
        eventually(lambda: ended(pid) is not None)

    assert time.monotonic() - began < started_command.END_WITHIN_S
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", -9)])
def test_how_a_child_ended_is_told_and_it_stays_to_be_reaped(script, code):
    child = subprocess.Popen(["sh", "-c", script])

    eventually(lambda: ended(child.pid) is not None)

    assert ended(child.pid) == code
    assert child.wait() == code
