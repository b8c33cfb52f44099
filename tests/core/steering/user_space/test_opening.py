"""Whether there can be steering on this machine, and what is said where there cannot."""

import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from temper_core.errors import MachineError
from temper_core.settings.models import SchedulerSettings
from temper_core.steering.opening import open_steerer
from tests.core.steering.user_space.plans import steered

NOWHERE = Path("/nowhere")
WITHOUT_RIGHTS = """
import sys
from pathlib import Path
from temper_core.errors import MachineError
from temper_core.node.cgroups import CgroupTree, detect_cgroups
from temper_core.settings.models import SchedulerSettings
from temper_core.steering.opening import open_steerer
try:
    settings = SchedulerSettings(steering_pin=sys.argv[1])
    open_steerer(settings, CgroupTree(detect_cgroups().unified), Path("/nowhere"))
except MachineError as error:
    print(error)
"""


@pytest.fixture
def settings(bpffs):
    return SchedulerSettings(steering_pin=str(bpffs / "temper" / "hints"))


@pytest.fixture
def fake_proc(tmp_path):
    """Make a /proc with a pid namespace of that number."""
    root = tmp_path / "proc"

    def make(number):
        (root / "self/ns").mkdir(parents=True)
        (root / "self/ns/pid").symlink_to(f"pid:[{number}]")
        return str(root)

    return make


def test_where_all_is_there_threads_are_steered_and_nothing_is_left_afterwards(
    bpf_allowed,  # noqa: ARG001 - skips where BPF cannot be used
    settings,
    tree,
    bpffs,
):
    steerer = open_steerer(settings, tree, NOWHERE)

    steerer.ready(steered())
    was_pinned = steerer.path.exists()
    steerer.close()

    assert was_pinned
    assert not (bpffs / "temper").exists()


def test_it_may_be_turned_off_and_what_a_killed_agent_left_goes(settings, tree, bpffs):
    pinned = bpffs / "temper" / "hints"
    pinned.parent.mkdir(mode=0o700)
    pinned.symlink_to("a-pin")

    with pytest.raises(MachineError, match="steering is static"):
        open_steerer(evolve(settings, steering="static"), tree, NOWHERE)

    assert not pinned.parent.exists()


def test_without_cgroup_v2_threads_cannot_be_told_apart(settings):
    with pytest.raises(MachineError, match="no cgroup v2 is mounted"):
        open_steerer(settings, None, NOWHERE)


def test_in_a_pid_namespace_of_its_own_the_remedy_is_the_hosts(settings, tree, fake_proc):
    with pytest.raises(MachineError, match="hostPID: true"):
        open_steerer(settings, tree, NOWHERE, proc_root=fake_proc(4026532999))


def test_where_nothing_can_be_pinned_the_remedy_is_a_mount(tmp_path, tree):
    settings = SchedulerSettings(steering_pin=str(tmp_path / "temper" / "hints"))

    with pytest.raises(MachineError, match="mount -t bpf"):
        open_steerer(settings, tree, NOWHERE)

    assert not (tmp_path / "temper").exists()


def test_a_directory_of_somebody_else_is_told(settings, tree, bpffs):
    (bpffs / "temper/theirs").mkdir(parents=True)
    subprocess.run(["chown", "65534", str(bpffs / "temper")], check=True)

    with pytest.raises(MachineError, match="belongs to uid 65534"):
        open_steerer(settings, tree, NOWHERE)


@pytest.mark.usefixtures("cgroups")
def test_a_process_that_may_not_use_bpf_is_told_what_it_lacks_and_leaves_nothing(settings, bpffs):
    pin = settings.steering_pin
    command = ["setpriv", "--bounding-set=-sys_admin,-bpf", sys.executable, "-c", WITHOUT_RIGHTS]

    done = subprocess.run([*command, pin], check=False, capture_output=True, text=True)

    if done.returncode:
        pytest.skip(f"capabilities cannot be dropped here: {done.stderr.strip()}")
    assert "CAP_BPF" in done.stdout
    assert not (bpffs / "temper").exists()
