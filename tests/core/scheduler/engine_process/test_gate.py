"""The gate, with a real FIFO, a real mount namespace and a real process that reads."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from temper_core.scheduler import pre_exec_script
from temper_core.scheduler.engine_process.gate import Gate, GateError
from temper_core.scheduler.engine_process.process import EngineProcess, Launch, spawn
from tests.core.scheduler.preflight.rights import can_gate
from tests.patience import PATIENCE_S

READER = 'read word < {state} && echo "read $word" && exec sleep 600'


def wait_for(fact: Callable[[], object]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not fact():
        assert time.monotonic() < limit
        time.sleep(0.002)


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def gate(tmp_path) -> Iterator[Gate]:
    made = Gate(tmp_path / "gate")
    yield made
    made.close()


@pytest.fixture
def reader(gate) -> Iterator[list[str]]:
    """A thread that reads what is behind the gate, as often as it is let through."""
    found: list[str] = []
    path = gate.path

    def read() -> None:
        found.append(path.read_text())

    thread = threading.Thread(target=read)
    thread.start()
    yield found
    thread.join(timeout=PATIENCE_S)


def test_nobody_is_at_a_new_gate(gate):
    assert not gate.look()
    assert gate.path.is_fifo()
    assert gate.path.stat().st_mode & 0o777 == 0o600


def test_whoever_reads_stands_at_the_gate_until_it_is_opened(gate, reader):
    wait_for(gate.look)
    time.sleep(0.05)
    assert reader == []

    gate.open()
    wait_for(lambda: reader)

    assert reader == ["disabled\n"]


@pytest.mark.usefixtures("reader")
def test_the_gate_has_no_name_from_the_first_arrival_on(gate):
    wait_for(gate.look)

    assert not gate.path.exists()

    gate.open()


def test_the_gate_tells_whatever_word_is_true(gate, reader):
    wait_for(gate.look)
    gate.open("enabled")
    wait_for(lambda: reader)

    assert reader == ["enabled\n"]


def test_a_gate_where_nobody_stands_cannot_be_opened(gate):
    with pytest.raises(GateError, match="not at the gate"):
        gate.open()


def test_a_reader_that_went_away_is_told_and_costs_no_descriptor(tmp_path):
    before = open_descriptors()
    gate = Gate(tmp_path / "gate")
    child = subprocess.Popen(["cat", gate.path], stdout=subprocess.DEVNULL)
    wait_for(gate.look)
    child.kill()
    child.wait()

    with pytest.raises(GateError, match="left the gate"):
        gate.open()
    gate.close()

    assert open_descriptors() == before
    assert not list(tmp_path.iterdir())


def test_a_closed_gate_leaves_nothing_and_lets_nobody_be_seen(tmp_path):
    before = open_descriptors()
    gate = Gate(tmp_path / "gate")

    gate.close()
    gate.close()

    assert not gate.look()
    assert open_descriptors() == before
    assert not list(tmp_path.iterdir())


def test_a_gate_that_cannot_be_made_says_where(tmp_path):
    (tmp_path / "gate").touch()

    with pytest.raises(GateError, match=r"no gate can be made at .*gate: File exists"):
        Gate(tmp_path / "gate")


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., EngineProcess]]:
    """Start a gated shell that reads a file named ``state``, as the engine does."""
    state = tmp_path / "state"
    state.write_text("enabled\n")
    started: list[EngineProcess] = []

    def run(script: str = READER, **options) -> EngineProcess:
        launch = Launch(
            Path("/bin/sh"),
            "[]",
            tmp_path / "run",
            arguments=("-c", script.format(state=state)),
            **{"gated_file": state, **options},
        )
        started.append(spawn(launch))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        wait_for(lambda process=process: process.exit_code is not None)
        process.close()
    assert not list((tmp_path / "run").iterdir())


@can_gate
def test_a_gated_engine_reads_the_gate_where_everybody_else_reads_the_file(start, tmp_path):
    process = start()
    wait_for(process.gate.look)

    assert process.log == ""
    assert (tmp_path / "state").read_text() == "enabled\n"

    process.gate.open()
    wait_for(lambda: process.log)
    assert process.log == "read disabled\n"


@can_gate
def test_the_mount_is_the_engines_own_and_goes_with_it(start, tmp_path):
    process = start()
    wait_for(process.gate.look)
    own = Path("/proc/self/mountinfo").read_text()
    its = Path(f"/proc/{process.pid}/mountinfo").read_text()

    assert str(tmp_path / "state") not in own
    assert str(tmp_path / "state") in its

    process.kill()
    wait_for(lambda: process.exit_code == -signal.SIGKILL)
    assert Path("/proc/self/mountinfo").read_text() == own


@can_gate
def test_an_engine_may_come_to_its_gate_again(start, tmp_path):
    again = tmp_path / "again"  # any earlier, and it would read the end of the first turn
    wait = f"until [ -e {again} ]; do sleep 0.01; done"
    turn = "read word < {state}; echo $word"
    process = start(f"{turn}; {wait}; {turn}; exec sleep 600")
    wait_for(process.gate.look)
    process.gate.open("one")
    wait_for(lambda: process.log == "one\n")

    again.touch()
    wait_for(process.gate.look)
    process.gate.open("two")

    wait_for(lambda: process.log == "one\ntwo\n")


@can_gate
def test_what_the_host_unmounts_is_unmounted_in_the_engines_namespace_too(tmp_path):
    """As for the volumes of a pod that ends, which a private namespace would keep busy."""
    script = """
set -e
mount --make-rshared / 2>/dev/null || true
mkdir "$1/volume"; mount -t tmpfs volume "$1/volume"; mount --make-shared "$1/volume"
touch "$1/state"; mkfifo "$1/gate"
"$2" -I -S "$3" $$ 0 "$1/gate" "$1/state" /bin/sleep 600 &
until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done
grep -c "$1/volume" /proc/$!/mountinfo
umount "$1/volume"
grep -c "$1/volume" /proc/$!/mountinfo || true
kill $!
"""
    command = [sys.executable, pre_exec_script.__file__]

    ended = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", str(tmp_path), *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert ended.stdout.split() == ["1", "0"], ended.stderr


@can_gate
def test_a_file_that_no_gate_can_lie_over_is_told_from_an_engine_that_fails(start, tmp_path):
    process = start(gated_file=tmp_path / "no-such-file")
    wait_for(lambda: process.exit_code is not None and process.is_output_complete)

    assert process.exit_code == pre_exec_script.CANNOT_MOUNT_GATE
    assert "cannot mount the gate over" in process.errors
    assert "No such file" in process.errors


@can_gate
def test_a_process_that_may_not_unshare_says_so(tmp_path):
    launcher = [sys.executable, "-I", "-S", pre_exec_script.__file__, str(os.getpid()), "0"]

    ended = subprocess.run(
        [
            *("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"),
            *(*launcher, str(tmp_path / "gate"), "/etc/hostname", "/bin/true"),
        ],
        check=False,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == pre_exec_script.NO_MOUNT_NAMESPACE
    assert "no mount namespace of its own: Operation not permitted" in ended.stderr


AGENT = """
import sys, time
from pathlib import Path
from temper_core.scheduler.engine_process.process import Launch, spawn
run, state = Path(sys.argv[1]), Path(sys.argv[2])
script = ("-c", f"read word < {state}; exec sleep 600")
process = spawn(Launch(Path("/bin/sh"), "[]", run, arguments=script, gated_file=state))
while not process.gate.look():
    time.sleep(0.005)
print(process.pid, flush=True)
time.sleep(600)
"""


@can_gate
def test_an_engine_at_the_gate_dies_with_an_agent_that_is_killed(tmp_path):
    state = tmp_path / "state"
    state.write_text("enabled\n")
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(tmp_path / "run"), str(state)],
        stdout=subprocess.PIPE,
        text=True,
    )
    with agent:
        assert agent.stdout is not None
        pid = int(agent.stdout.readline())
        agent.kill()

    def is_gone() -> bool:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except FileNotFoundError:
            return True
        return status.rpartition(")")[2].split()[0] in "ZX"

    wait_for(is_gone)
    assert not list((tmp_path / "run").glob("*.gate"))
