import contextlib
import errno
import fcntl
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_core.errors import InputError
from temper_core.launch import (
    CommandFailed,
    Workload,
    keep_sizes,
    name_of_command,
    remove_left_behind,
    run,
)
from temper_core.node.cgroups import detect_cgroups
from temper_core.records.tiers import Tier
from temper_core.scheduler.host.kernel import SchedExt
from tests.patience import PATIENCE_S

TEMPER = str(Path(sys.executable).with_name("temper"))
# Writes down the signals it receives, one by one, until SIGUSR1.
LISTENER = """
import signal, sys
held = [signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1]
signal.pthread_sigmask(signal.SIG_BLOCK, held)
with open(sys.argv[1], "w", buffering=1) as told:
    number = 0
    while number != signal.SIGUSR1:
        number = signal.sigwait(held)
        print(signal.Signals(number).name, file=told)
"""
ON_STOCK = (
    "temper: scx_layered is not attached, so {name} runs on the stock scheduler, without the "
    "effect of tier {tier}; temper doctor shows why"
)


def on_stock(name, tier):
    """Return the lines of a command that no engine schedules, none where one does."""
    return [] if SchedExt().read().is_layered else [ON_STOCK.format(name=name, tier=tier)]


KEYS = [(b"\x03", "SIGINT"), (b"\x1c", "SIGQUIT")]


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


def test_a_child_that_stays_is_told_and_its_cgroup_kept_until_it_has_ended(unified, tmp_path):
    pidfile = tmp_path / "pid"

    ended = run(Workload("left", Tier.LOW), ["sh", "-c", f"sleep 60 & echo $! > {pidfile}"])

    try:
        was_kept = ended.cgroup.is_dir()
        run(Workload("another", Tier.LOW), ["true"])
        is_kept_beside_another = ended.cgroup.is_dir()
    finally:
        os.kill(int(pidfile.read_text()), signal.SIGKILL)
        _wait_for(lambda: _is_empty(ended.cgroup))
        run(Workload("another", Tier.LOW), ["true"])
    assert ended.still_running == (int(pidfile.read_text()),)
    assert ended.cgroup == unified / "temper.slice/run-left@low"
    assert (was_kept, is_kept_beside_another) == (True, True)
    assert not ended.cgroup.exists()


def test_a_lock_that_another_process_holds_does_not_keep_the_command_from_running(unified):
    parent = unified / "temper.slice"
    parent.mkdir(exist_ok=True)
    held = [os.open(unified, os.O_RDONLY)]
    with contextlib.suppress(FileNotFoundError):  # before Linux 5.14
        held.append(os.open(parent / "cgroup.kill", os.O_WRONLY))
    for descriptor in held:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        ended = run(Workload("locked", Tier.LOW), ["true"])
    finally:
        for descriptor in held:
            os.close(descriptor)

    assert ended.exit_code == 0
    assert not ended.cgroup.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else needs root")
def test_another_user_keeps_no_cgroup_from_being_removed(unified):
    left = unified / "temper.slice/run-left-behind@low"
    left.mkdir(parents=True)
    if not (left / "cgroup.kill").exists():
        pytest.skip("before Linux 5.14 every user may hold the lock")

    with lock_all_as_somebody_else(unified):
        removed, kept = remove_left_behind()

    assert left in removed
    assert left not in kept


@contextlib.contextmanager
def lock_all_as_somebody_else(unified):
    """Hold a shared lock of whatever another user may open of the hierarchy's root and slice."""
    held = []
    os.seteuid(65534)
    try:
        for path in (unified, *unified.glob("*"), *unified.glob("temper.slice/*")):
            for flags in (os.O_RDONLY, os.O_WRONLY):
                with contextlib.suppress(OSError):
                    held.append(os.open(path, flags))
    finally:
        os.seteuid(0)
    for descriptor in held:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    try:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)


def test_a_slice_that_is_removed_while_the_lock_is_awaited_is_made_anew(unified):
    parent = unified / "temper.slice"
    parent.mkdir(exist_ok=True)
    if not (parent / "cgroup.kill").exists():
        pytest.skip("before Linux 5.14 the lock is one of the root")
    descriptor = os.open(parent / "cgroup.kill", os.O_WRONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    temper = _start("run", "--name", "waiting", "true")
    _wait_for(lambda: _waits_for_lock(temper.pid))
    parent.rmdir()
    os.close(descriptor)

    assert temper.wait(PATIENCE_S) == 0


def test_what_a_killed_temper_run_left_goes_with_the_next_one(unified):
    temper = _start("run", "--name", "killed", "sleep", "60")
    cgroup = unified / "temper.slice/run-killed@normal"
    _wait_for(lambda: _command_in(cgroup))
    command = _command_in(cgroup)
    temper.kill()
    temper.wait()
    lived_on = not _is_empty(cgroup)
    os.kill(command, signal.SIGKILL)
    _wait_for(lambda: _is_empty(cgroup))

    run(Workload("next", Tier.LOW), ["true"])

    assert lived_on
    assert not cgroup.exists()


def test_cgroups_that_the_command_made_below_its_own_go_as_well(unified):
    path = unified / "temper.slice/run-nested@low"

    run(Workload("nested", Tier.LOW), ["mkdir", "-p", f"{path}/a/b"])

    assert not path.exists()


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


@pytest.mark.parametrize(
    ("request_", "limit", "told"),
    [
        ("lots", None, "--cpu-request: 'lots' is no CPU quantity"),
        (None, "-1", "--cpu-limit: '-1' is negative"),
        (None, "0", "--cpu-limit: must be more than 0"),
        ("2", "1500m", "--cpu-request: 2 is more than --cpu-limit 1500m"),
    ],
)
def test_a_size_that_makes_no_sense_is_refused(request_, limit, told):
    with pytest.raises(InputError, match=told):
        Workload.parse("a", Tier.NORMAL, None, request_, limit)


def test_a_request_may_be_as_large_as_the_limit():
    workload = Workload.parse("a", Tier.NORMAL, None, "2", "2000m")

    assert (workload.cpu_request_millis, workload.cpu_limit_millis) == (2000, 2000)


def test_the_name_of_a_command_is_the_last_part_of_its_path():
    assert name_of_command("/usr/bin/python3.11") == "python3.11"


@pytest.mark.parametrize("command", ["/", "", "bin/", "/opt/my tool"])
def test_a_command_that_gives_no_name_is_told_of_the_option(command):
    ended = _ended("run", "--", command)

    assert ended.returncode == 2
    assert f"temper: the command {command!r} gives no name for the workload" in ended.stderr
    assert "--name" in ended.stderr


def test_sizes_are_kept_exactly_with_the_cgroup(unified):
    path = unified / "temper.slice/run-sized@high"
    names = [f"user.temper.cpu_{what}_millis" for what in ("request", "limit")]
    read = f"import os; print(*(os.getxattr({str(path)!r}, n).decode() for n in {names}))"
    sizes = ["--cpu-request", "123m", "--cpu-limit", "1.5"]

    ended = _ended("run", "--tier", "high", "--name", "sized", *sizes, sys.executable, "-c", read)

    assert ended.stdout == "123 1500\n"
    assert ended.stderr.splitlines() == on_stock("sized", "high")


@pytest.mark.skipif(
    SchedExt().read().is_layered, reason="an engine schedules this machine, so nothing is told"
)
@pytest.mark.usefixtures("unified")
def test_without_an_engine_a_line_tells_that_the_stock_scheduler_runs_the_command():
    ended = _ended("run", "--tier", "critical", "--name", "plain", "echo", "done")

    assert ended.stdout == "done\n"
    assert ended.stderr == ON_STOCK.format(name="plain", tier="critical") + "\n"


def test_sizes_that_can_be_kept_nowhere_are_named():
    # The kernel takes no attributes of this family here, and there are no CPU files.
    folder = Path("/proc/self")

    lost = keep_sizes(Workload("a", Tier.NORMAL, None, 500, 1000), folder)

    assert lost == ("--cpu-request", "--cpu-limit")
    assert keep_sizes(Workload("a", Tier.NORMAL), folder) == ()


def test_a_size_without_effect_is_warned_of(unified, monkeypatch):
    if "cpu" in (unified / "cgroup.controllers").read_text().split():
        pytest.skip("this machine's cgroup v2 has the CPU controller")
    monkeypatch.setattr(os, "setxattr", _refuse_attribute)
    warnings = []

    run(Workload("lost", Tier.LOW, cpu_limit_millis=500), ["true"], warn=warnings.append)

    told = [f"temper: {line.partition(':')[0]}" for line in warnings]
    assert told == ["temper: --cpu-limit has no effect", *on_stock("lost", "low")]


@pytest.mark.parametrize("tier", ["high", "low"])
def test_a_second_run_of_a_name_is_refused_while_the_first_is_running(unified, tier):
    first = _start("run", "--tier", "high", "--name", "twin", "sleep", "60")
    cgroup = unified / "temper.slice/run-twin@high"
    try:
        _wait_for(lambda: _command_in(cgroup))
        command = _command_in(cgroup)
        second = _ended("run", "--tier", tier, "--name", "twin", "true")
        first_lives = _command_in(cgroup) == command
    finally:
        first.terminate()
        first.wait()

    assert (second.returncode, first_lives) == (2, True)
    assert second.stderr == (
        "temper: a workload named 'twin' is running already, in temper.slice/run-twin@high "
        f"(process {command}); give this one another --name\n"
    )


def test_an_empty_cgroup_of_the_same_name_is_no_obstacle(unified):
    (unified / "temper.slice/run-again@critical").mkdir(parents=True)

    ended = run(Workload("again", Tier.LOW), ["true"])

    assert ended.exit_code == 0
    assert not (unified / "temper.slice").exists() or not list(
        (unified / "temper.slice").glob("run-again@*")
    )


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT, signal.SIGQUIT]
)
def test_a_signal_sent_to_us_alone_reaches_the_command(unified, number):
    temper = _start("run", "--tier", "high", "--name", "sig", "sleep", "60")
    cgroup = unified / "temper.slice/run-sig@high"
    _wait_for(lambda: _command_in(cgroup))

    temper.send_signal(number)

    assert temper.wait(timeout=PATIENCE_S) == 128 + number
    assert not cgroup.exists()


@pytest.mark.parametrize(("key", "name"), KEYS)
def test_a_key_at_the_terminal_interrupts_the_command_and_not_us(unified, tmp_path, key, name):
    assert unified

    status = _type(key, LISTENER, tmp_path / "told")

    assert (tmp_path / "told").read_text().split() == [name, "SIGUSR1"]
    assert status == 0


@pytest.mark.parametrize(("key", "name"), KEYS)
def test_what_the_terminal_sent_to_the_whole_group_is_not_sent_again(unified, tmp_path, key, name):
    assert unified
    outside_the_group = "import os; os.setpgid(0, 0)\n" + LISTENER

    status = _type(key, outside_the_group, tmp_path / "told")

    assert name not in (tmp_path / "told").read_text()
    assert status == 0


def test_a_command_starts_with_no_signal_held_back(unified):
    assert unified
    read = "import signal; print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"

    ended = _ended("run", "--name", "mask", sys.executable, "-c", read)

    assert ended.stdout == "[]\n"


def test_the_end_of_a_command_is_noticed_where_news_of_children_are_ignored(unified):
    assert unified
    start = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [TEMPER, "run", "--name", "deaf", "sh", "-c", "exit 5"]

    ended = subprocess.run([sys.executable, "-c", start, *command], check=False, timeout=PATIENCE_S)

    assert ended.returncode == 5


def _start(*arguments):
    return subprocess.Popen([TEMPER, *arguments], stderr=subprocess.DEVNULL)


def _type(key, script, told):
    """Type *key* at the terminal of a listening command, then end it; return the exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        listen = [sys.executable, "-c", script, str(told)]
        os.execv(TEMPER, [TEMPER, "run", "--name", "keyed", *listen])
    try:
        _wait_for(told.exists)
        os.write(terminal, key)
        # The terminal shows the key, as ^C, after it has sent the signal.
        shown = b""
        while b"^" not in shown:
            shown += os.read(terminal, 100)
        os.kill(pid, signal.SIGUSR1)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        os.close(terminal)


def _ended(*arguments):
    return subprocess.run(
        [TEMPER, *arguments], check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )


def _refuse_attribute(*_arguments):
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def _pids(cgroup):
    with contextlib.suppress(OSError):
        return [int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()]
    return []


def _command_in(cgroup):
    """The process in *cgroup*, once it executes its own program; none before."""
    for pid in _pids(cgroup):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text() == "sleep\n":
                return pid
    return None


def _is_empty(cgroup):
    return "populated 0" in (cgroup / "cgroup.events").read_text()


def _wait_for(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"nothing happened within {PATIENCE_S} s"
        time.sleep(0.02)


def _waits_for_lock(pid):
    with contextlib.suppress(OSError):  # a descriptor is closed meanwhile
        files = [each.readlink() for each in Path(f"/proc/{pid}/fd").iterdir()]
        return any(file.match("temper.slice/cgroup.kill") for file in files)
    return False
