"""What an agent that is not to steer does about the pin of one that was killed."""

import os
import subprocess
from pathlib import Path

import pytest

from temper_core.agent.assembly import open_steering
from temper_core.errors import MachineError
from temper_core.scheduler.host.agent_lock import agent_lock
from temper_core.scheduler.host.roots import Roots
from temper_core.settings.models import SchedulerSettings, Settings
from temper_core.steering.nice_record import NiceRecord
from temper_core.steering.niceness import Niceness, WantedNice
from temper_core.steering.thread_identity import NS_PER_TICK, in_first_pid_namespace


@pytest.fixture
def pin(tmp_path):
    """Leave something at a pin's path on a BPF file system, as a killed agent does."""
    mounted = tmp_path / "bpf"
    mounted.mkdir()
    mount = ["mount", "-t", "bpf", "bpf", str(mounted)]
    done = subprocess.run(mount, check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no BPF file system can be mounted here: {done.stderr.strip()}")
    path = mounted / "temper/hints"
    path.parent.mkdir(mode=0o700)
    path.symlink_to("elsewhere")
    yield path
    subprocess.run(["umount", "-l", str(mounted)], check=True)


@pytest.fixture
def roots(tmp_path):
    return Roots(sys=tmp_path / "sys", run=tmp_path / "run", node=tmp_path / "node")


def settings(pin, enforce):
    return Settings(scheduler=SchedulerSettings(steering_pin=str(pin), enforce=enforce))


@pytest.mark.parametrize(("enforce", "why"), [(False, "enforce is false"), (True, "no sched_ext")])
def test_what_a_killed_agent_pinned_goes_where_no_engine_is_to_be(pin, roots, enforce, why):
    with pytest.raises(MachineError, match=why):
        open_steering(settings(pin, enforce), roots)

    assert not pin.parent.exists()


def test_an_agent_that_only_observes_leaves_the_pin_of_one_that_runs(pin, roots):
    with agent_lock(roots.node), pytest.raises(MachineError, match="enforce is false"):
        open_steering(settings(pin, enforce=False), roots)

    assert pin.is_symlink()


@pytest.fixture
def boosted(roots):
    """A thread that an agent has boosted before it was killed."""
    if os.geteuid() or not in_first_pid_namespace():
        pytest.skip("nice values below 0 need root and the host's pid namespace")
    roots.run.mkdir()
    with subprocess.Popen(["sleep", "600"]) as process:
        os.setpriority(os.PRIO_PROCESS, process.pid, 0)  # the tests may run under nice(1)
        start = int(Path(f"/proc/{process.pid}/stat").read_text().split()[21])
        wanted = WantedNice(process.pid, start * NS_PER_TICK, -5)
        Niceness(NiceRecord(roots.run), is_allowed=True).follow([wanted], 0.0)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == -5
        yield process.pid
        process.kill()


@pytest.mark.parametrize("enforce", [False, True])
def test_nice_values_of_a_killed_agent_go_back_where_no_engine_is_to_be(
    tmp_path, roots, boosted, enforce
):
    with pytest.raises(MachineError):
        open_steering(settings(tmp_path / "no/pin", enforce), roots)

    assert os.getpriority(os.PRIO_PROCESS, boosted) == 0
    assert not NiceRecord(roots.run).path.exists()


def test_an_agent_that_only_observes_leaves_the_nice_values_of_one_that_runs(
    tmp_path, roots, boosted
):
    with agent_lock(roots.node), pytest.raises(MachineError):
        open_steering(settings(tmp_path / "no/pin", enforce=False), roots)

    assert os.getpriority(os.PRIO_PROCESS, boosted) == -5
