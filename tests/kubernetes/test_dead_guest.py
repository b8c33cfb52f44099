"""A node whose virtual machine has died: whatever is asked of it ends at once, with the reason.

The virtual machine is a process that names the node's directory, as ``kube/node-up`` leaves one.
"""

import subprocess
import time

import pytest

from tests.control_plane.cluster import KUBE
from tests.kubernetes.node.guest import Guest, GuestDied

LAST = "traps: PANIC: double fault, error_code: 0x0"
LOG = f"run: the guest died (QEMU's exit code 0); its console ends with:\n[ 7.1] {LAST}\n"
AT_ONCE_S = 30.0
"""Far below what any of the commands would take, on however busy a machine."""


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "node/jobs").mkdir(parents=True)
    (tmp_path / "node.log").write_text(LOG)
    return tmp_path


@pytest.fixture
def machine(directory):
    # the shell waits in a read of its own, so that nothing is left when it is killed
    command = ["sh", "-c", "echo up; read forever", str(directory)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == b"up\n"
        (directory / "node.pid").write_text(f"{process.pid}\n")
        yield process
        process.kill()


@pytest.fixture
def dead(machine):
    machine.kill()
    machine.wait()


@pytest.mark.usefixtures("machine")
def test_what_a_command_prints_and_is_given_passes_through_while_the_guest_lives(directory):
    ended = Guest(directory).run(["sh", "-c", "cat; echo no >&2; exit 7"], given="yes" * 40_000)

    assert (ended.returncode, ended.stdout, ended.stderr) == (7, "yes" * 40_000, "no\n")


def test_a_command_that_waits_for_the_node_ends_when_the_guest_dies(directory, machine):
    killer = subprocess.Popen(["sh", "-c", f"sleep 2; kill -KILL {machine.pid}"])
    began = time.monotonic()

    with pytest.raises(GuestDied, match=LAST):
        Guest(directory).run(["sleep", "600"], timeout=600)

    assert time.monotonic() - began < AT_ONCE_S
    killer.wait()


@pytest.mark.usefixtures("dead")
def test_the_console_is_printed_once_and_then_named_in_one_line(directory):
    guest = Guest(directory)
    with pytest.raises(GuestDied, match=LAST):
        guest.run(["true"])

    with pytest.raises(GuestDied) as second:
        guest.run(["true"])

    assert str(second.value).splitlines() == [
        f"the node's guest died in an earlier test: {LOG.splitlines()[0]}"
    ]


@pytest.mark.usefixtures("machine")
def test_a_command_that_takes_too_long_on_a_living_node_is_ended(directory):
    with pytest.raises(subprocess.TimeoutExpired):
        Guest(directory).run(["sleep", "600"], timeout=2)


@pytest.mark.usefixtures("dead")
def test_node_exec_does_not_wait_for_a_dead_guest(directory):
    began = time.monotonic()

    ended = subprocess.run(
        [KUBE / "node-exec", "--timeout", "600", directory, "true"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert time.monotonic() - began < AT_ONCE_S
    assert (ended.returncode, ended.stdout) == (125, "")
    assert LAST in ended.stderr
    assert list((directory / "node/jobs").iterdir()) == []


@pytest.mark.usefixtures("machine")
def test_node_exec_hands_back_what_the_guest_answers(directory):
    jobs = directory / "node/jobs"
    with subprocess.Popen(
        [KUBE / "node-exec", directory, "exit 3"], stdout=subprocess.PIPE, text=True
    ) as asking:
        while not (asked := list(jobs.glob("*.sh"))):
            time.sleep(0.01)
        asked[0].with_suffix(".out").write_text("said\n")
        asked[0].with_suffix(".status").write_text("3\n")
        printed = asking.communicate()[0]

    assert (asking.returncode, printed) == (3, "said\n")
