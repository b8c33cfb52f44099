"""The kill switch where the disk of the host's file hangs."""

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from temper_core.cli import host_file_process
from temper_core.cli.host_file_process import SilentFileError, change_file
from temper_core.cli.safe_mode_outcome import Host
from temper_core.cli.safe_mode_switch import Switch
from temper_core.errors import MachineError
from temper_core.safe_mode.host_file import SafeModeFile
from temper_core.scheduler.host.roots import Roots
from temper_core.settings import Settings
from temper_core.settings.models import SafeModeSettings, ServerSettings
from tests.control_plane.cluster import wait_until
from tests.core.disk_images import ext4_image, mounted
from tests.own_host import ENVIRONMENT, NO_OWN_HOSTS, OWN_RUN, TEMPER, OwnHost, has_own_hosts
from tests.patience import PATIENCE_S

STANDS = (sys.executable, "-c", "import signal; signal.pause()")


FREEZE = shutil.which("fsfreeze") or "fsfreeze"


def hangs(path, *_):
    raise SilentFileError(f"{path} does not answer")


def standing(disk):
    """Return the processes that change the file on *disk*."""
    found = subprocess.run(
        ["pgrep", "-f", f"host_file_process (add|remove) {disk}/"], check=False, capture_output=True
    )
    return found.stdout.split()


@pytest.fixture
def own(tmp_path):
    return Settings(
        safe_mode=SafeModeSettings(str(tmp_path / "safe-mode"), str(tmp_path / "requests.json")),
        server=ServerSettings("", str(tmp_path / "agent.sock")),
    )


@pytest.fixture
def switch(own, tmp_path):
    return Switch(own, Host(Roots(run=tmp_path, node=tmp_path, proc=tmp_path), lambda: own, hangs))


def test_the_file_is_changed_in_a_process_of_its_own(tmp_path):
    file = tmp_path / "safe-mode"

    note, text = change_file(file, "add", "cli", "a drill"), file.read_text()

    assert (note, text.endswith("Z: a drill\n")) == ("", True)
    assert change_file(file, "remove", "cli") == "removed"
    assert change_file(file, "remove", "cli") == ""


def test_a_file_that_cannot_be_changed_is_told_by_the_process(tmp_path):
    (tmp_path / "place").write_text("no directory")

    with pytest.raises(MachineError, match=r"cannot write .*Not a directory"):
        change_file(tmp_path / "place/safe-mode", "add", "cli")


@pytest.mark.parametrize(
    "program",
    [
        ("/nonexistent",),
        (sys.executable, "-c", "raise SystemExit(1)"),
        (sys.executable, "-c", "print('begun', end='')"),
    ],
)
def test_without_such_a_process_the_file_is_changed_here(tmp_path, program):
    change_file(tmp_path / "safe-mode", "add", "cli", program=program)

    assert (tmp_path / "safe-mode").exists()


def test_a_process_that_stands_in_the_kernel_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(host_file_process, "ANSWER_S", 0.1)

    with pytest.raises(SilentFileError, match=r"It is not changed, and process \d+ ends") as raised:
        change_file(tmp_path / "safe-mode", "add", "cli", program=STANDS)

    (pid,) = re.findall(r"process (\d+)", str(raised.value))
    os.kill(int(pid), signal.SIGKILL)
    os.waitpid(int(pid), 0)


def test_a_command_that_was_stopped_meanwhile_reads_the_answer_that_is_there(tmp_path):
    program = f"""
import os, signal, subprocess, sys, threading, time
from pathlib import Path
from temper_core.cli import host_file_process

host_file_process.ANSWER_S = 1.0
me, file = os.getpid(), Path({str(tmp_path / "safe-mode")!r})
subprocess.Popen([
    "sh", "-c", f"sleep 0.1; kill -STOP {{me}}; while ! test -e {{file}}; do sleep 0.1; done; "
    f"sleep 1.5; kill -CONT {{me}}"
])
print(repr(host_file_process.change_file(file, "add", "bob")))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert (ended.stdout, ended.stderr) == ("''\n", "")


SLOW = """
import os, sys, time
from pathlib import Path
from temper_core.cli import host_file_process

calls, fsync = [], os.fsync

def slow(descriptor):
    calls.append(descriptor)
    while len(calls) == 2 and not Path(GO).exists():
        time.sleep(0.01)
    fsync(descriptor)

os.fsync = slow
host_file_process._main(*sys.argv[1:])
"""


@pytest.mark.parametrize("action", ["add", "remove"])
def test_a_disk_that_hangs_within_the_change_lets_no_change_be_seen_late(
    tmp_path, monkeypatch, action
):
    file = SafeModeFile(tmp_path / "host/safe-mode")
    for requester in ("alice", "bob"):
        file.add(requester, "before")
    before = file.lines()
    monkeypatch.setattr(host_file_process, "ANSWER_S", 5)
    program = (sys.executable, "-c", SLOW.replace("GO", repr(str(tmp_path / "go"))))

    with pytest.raises(SilentFileError, match=r"may be changed by now, and process") as raised:
        change_file(file.path, action, "bob", "late", program=program)
    (pid,) = re.findall(r"process (\d+)", str(raised.value))
    (tmp_path / "go").touch()
    os.waitpid(int(pid), 0)

    assert file.lines() == before
    assert [each.name for each in file.path.parent.iterdir()] == ["safe-mode"]


def test_on_names_the_file_and_fails_where_neither_agent_nor_disk_answers(switch, own):
    outcome = switch.on("cli", "a drill")

    assert outcome.alarms == (f"{own.safe_mode.file} does not answer",)
    assert "no agent answers" in outcome.done


def test_off_asks_the_agents_although_the_file_does_not_answer(switch, own):
    outcome = switch.off("cli")

    assert outcome.alarms == (f"{own.safe_mode.file} does not answer",)
    assert "no agent answers" in outcome.done


@contextmanager
def frozen(point):
    """Let every write to the file system at *point* hang in the kernel."""
    subprocess.run([FREEZE, "-f", point], check=True)
    try:
        yield
    finally:
        subprocess.run([FREEZE, "-u", point], check=True)


@pytest.mark.parametrize("action", ["on", "off"])
def test_the_command_ends_while_the_disk_hangs(tmp_path, action):
    path = tmp_path / "agent.toml"
    with mounted(ext4_image(tmp_path / "image"), tmp_path / "disk") as disk:
        path.write_text(
            f'state_directory = "{disk}"\n[server]\nlisten = ""\nsocket = "{tmp_path}/no.sock"\n'
        )
        SafeModeFile(disk / "safe-mode").add("cli", "before")
        command = [*OWN_RUN, TEMPER, "safe-mode", action, "--settings", path]
        before = (disk / "safe-mode").read_text()
        with frozen(disk):
            ended = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
                env=ENVIRONMENT,
            )
        wait_until(lambda: not standing(disk), "the process left behind", PATIENCE_S)
        assert (disk / "safe-mode").read_text() == before
        assert {each.name for each in disk.iterdir()} <= {"safe-mode", "lost+found"}

    assert ended.returncode == 3
    assert f"{disk}/safe-mode does not answer within 10 s: its disk hangs" in ended.stderr
    assert "no agent answers" in ended.stdout
    assert "which requests the host's files hold is not known" in ended.stdout
    assert "no request" not in ended.stdout


@pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS)
def test_an_agent_whose_disk_hangs_hears_the_switch_and_says_what_it_cannot_keep(tmp_path):
    state = tmp_path / "agent/state"
    state.parent.mkdir()
    with mounted(ext4_image(tmp_path / "image"), state):
        host = OwnHost(tmp_path)
        agent = host.start(host.settings("agent"))
        try:
            with frozen(state):
                off = host.temper("safe-mode", "off", "--requester", "alice")
                on = host.temper("safe-mode", "on")
        finally:
            agent.kill()
            agent.wait()
            host.close()

    assert (off.returncode, on.returncode) == (0, 3)
    assert "has heard" in on.stdout
    assert f"{state}/safe-mode-requests.json is not written: the disk has not answered" in on.stderr
