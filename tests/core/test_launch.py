import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_core.errors import InputError
from temper_core.launch import CommandFailed, Workload, run
from temper_core.node.cgroups import detect_cgroups
from temper_core.records.tiers import Tier

TEMPER = str(Path(sys.executable).with_name("temper"))


@pytest.fixture
def unified():
    root = detect_cgroups().unified
    if root is None or not os.access(root, os.W_OK):
        pytest.skip("this machine has no cgroup v2 that can be written to")
    return root


def test_the_command_runs_in_a_cgroup_that_names_tier_and_profile(unified, tmp_path):
    told = tmp_path / "cgroup"

    ended = run(
        Workload("db", Tier.CRITICAL, "mysql-innodb"),
        ["sh", "-c", f"cat /proc/self/cgroup > {told}; exit 7"],
    )

    assert ended.exit_code == 7
    assert "/temper.slice/run-db@critical@mysql-innodb" in told.read_text()
    assert not (unified / "temper.slice/run-db@critical@mysql-innodb").exists()


def test_a_child_that_stays_is_told_and_its_cgroup_kept(unified, tmp_path):
    pidfile = tmp_path / "pid"

    ended = run(Workload("left", Tier.LOW), ["sh", "-c", f"sleep 60 & echo $! > {pidfile}"])

    try:
        assert ended.still_running == (int(pidfile.read_text()),)
        assert ended.cgroup == unified / "temper.slice/run-left@low"
    finally:
        os.kill(int(pidfile.read_text()), signal.SIGKILL)
        _remove_when_empty(ended.cgroup)


@pytest.mark.usefixtures("unified")
def test_a_command_that_ends_alone_leaves_no_cgroup():
    ended = run(Workload("again", Tier.LOW), ["true"])

    assert ended.still_running == ()
    assert not ended.cgroup.exists()


@pytest.mark.parametrize(("argv", "code"), [(["/no/such/command"], 127), (["/etc/passwd"], 126)])
def test_a_command_that_cannot_start_exits_as_a_shell_would(unified, argv, code):
    with pytest.raises(CommandFailed) as caught:
        run(Workload("x", Tier.NORMAL), argv)

    assert caught.value.exit_code == code
    assert not (unified / "temper.slice/run-x@normal").exists()


@pytest.mark.parametrize("name", ["", "a/b", "a@b", "../x", "a b", "-a", "x" * 64])
def test_a_name_that_no_cgroup_should_have_is_refused(name):
    with pytest.raises(InputError, match="--name"):
        Workload.parse(name, Tier.NORMAL, None, None, None)


def test_a_quantity_that_is_none_is_refused():
    with pytest.raises(InputError, match="lots"):
        Workload.parse("a", Tier.NORMAL, None, "lots", None)


def test_a_signal_reaches_the_command_and_the_exit_code_comes_back(unified):
    temper = subprocess.Popen([TEMPER, "run", "--tier", "high", "--name", "sig", "sleep", "60"])
    cgroup = unified / "temper.slice/run-sig@high"
    _wait_for(lambda: cgroup.exists() and (cgroup / "cgroup.procs").read_text().strip())

    temper.terminate()

    assert temper.wait(timeout=10) == 128 + signal.SIGTERM
    assert not cgroup.exists()


def _wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "nothing happened within 10 s"
        time.sleep(0.02)


def _remove_when_empty(cgroup):
    _wait_for(lambda: not (cgroup / "cgroup.procs").read_text().strip())
    cgroup.rmdir()
    if not any(path.is_dir() for path in cgroup.parent.iterdir()):
        cgroup.parent.rmdir()
