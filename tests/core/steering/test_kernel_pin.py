"""The pin for the engine, and that nothing else is left of the kernel side."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from temper_core.bpf import maps
from temper_core.errors import BpfError
from temper_core.steering.kernel import SteeringKernel
from tests.core.steering.processes import has_gone, until

TASK_STORAGE = 29
NO_PREALLOC = 1


@pytest.fixture
def folder(bpffs):
    made = bpffs / "temper"
    made.mkdir(mode=0o700)
    return made


def test_the_pinned_map_is_the_one_that_hints_are_written_to(kernel, folder):
    kernel.pin(folder / "hints")

    pinned = maps.open_pinned(folder / "hints")
    found = maps.info(pinned)
    os.close(pinned)
    assert found.id == kernel.map_id


def test_the_map_is_what_the_engine_declares(kernel, folder):
    kernel.pin(folder / "hints")

    pinned = maps.open_pinned(folder / "hints")
    found = maps.info(pinned)
    os.close(pinned)
    assert (found.name, found.kind, found.flags) == ("scx_layered_tas", TASK_STORAGE, NO_PREALLOC)
    assert (found.key_size, found.value_size, found.max_entries) == (4, 32, 0)


def test_nobody_else_may_open_the_pin(kernel, folder):
    kernel.pin(folder / "hints")

    assert stat.S_IMODE((folder / "hints").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_a_directory_that_others_may_enter_is_refused(kernel, folder, mode):
    folder.chmod(mode)

    with pytest.raises(BpfError, match="is open to others"):
        kernel.pin(folder / "hints")

    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory away")
def test_a_directory_of_somebody_else_is_refused(kernel, folder):
    os.chown(folder, 65534, 65534)

    with pytest.raises(BpfError, match="is open to others"):
        kernel.pin(folder / "hints")


def test_a_link_to_a_directory_is_refused(kernel, folder, tmp_path_factory):
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(folder)

    with pytest.raises(BpfError, match="is open to others"):
        kernel.pin(link / "hints")


def test_a_directory_that_is_not_there_is_named(kernel, folder):
    with pytest.raises(BpfError, match="gone: No such file") as refused:
        kernel.pin(folder / "gone" / "hints")

    assert refused.value.errno == errno.ENOENT


def test_a_pin_that_is_there_already_is_never_replaced_in_silence(kernel, folder):
    kernel.pin(folder / "hints")

    with pytest.raises(BpfError) as refused:
        kernel.pin(folder / "hints")

    assert refused.value.errno == errno.EEXIST


def test_a_pinned_map_outlives_the_kernel_side_until_it_is_unpinned(folder):
    with SteeringKernel.open() as kernel:
        map_id = kernel.map_id
        kernel.pin(folder / "hints")

    assert not has_gone(map_id)
    (folder / "hints").unlink()
    until(lambda: has_gone(map_id))


@pytest.mark.usefixtures("bpf_allowed")
def test_nothing_is_left_in_the_kernel_after_closing():
    descriptors, before = open_descriptors(), maps.map_ids_of(os.getpid())
    kernel = SteeringKernel.open()
    ours = set(maps.map_ids_of(os.getpid())).difference(before)

    kernel.close()
    kernel.close()

    assert len(ours) == 7
    assert open_descriptors() == descriptors
    until(lambda: all(has_gone(map_id) for map_id in ours))


def open_descriptors():
    return sorted(Path("/proc/self/fd").iterdir())


@pytest.mark.usefixtures("bpf_allowed")
def test_nothing_is_left_of_an_agent_that_was_killed(spawn):
    program = (
        "from temper_core.steering.kernel import SteeringKernel\n"
        "kernel = SteeringKernel.open()\n"
        "kernel.set_table({}, (), 2)\n"
        "kernel.walk()\n"
        "print(kernel.map_id, flush=True)\n"
        "input()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    agent = spawn(sys.executable, "-c", program, **pipes, cwd=Path(__file__).parents[3])
    map_id = int(agent.stdout.readline())

    agent.send_signal(signal.SIGKILL)

    until(lambda: has_gone(map_id))
