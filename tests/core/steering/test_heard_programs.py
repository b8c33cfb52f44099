"""Real containers that begin their program late, recognised because the kernel tells of the exec.

The clock of the pod source is moved, so that it looks by itself only after minutes.
"""

import shutil
import subprocess

import pytest

from temper_core.node.local_source import LocalPods
from temper_core.records.contributions import PodSourceContext
from temper_core.records.executions import ExecutionNews
from temper_core.records.machine import MachineShape
from temper_core.settings.models import PodSettings
from tests.core.steering.processes import until

ID = "fedcba9876543210" * 4
STARTS = {
    "by exec": 'read line; exec "$0" 600',
    "by exec of a child": 'sh -c \'read line; exec "$0" 600\' "$0"; true',
    "as a child": 'read line; "$0" 600; true',
}
RESTS_S = 100.0
SHELLS = {"by exec": 1, "by exec of a child": 2, "as a child": 1}


class MovedClock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def mysqld(tmp_path):
    """A real program of that name, which sleeps for as long as it is told."""
    return shutil.copy(shutil.which("sleep"), tmp_path / "mysqld")


@pytest.fixture
def start(spawn, make_cgroup, mysqld):
    """Start a shell's script in a container of its own. The script gets a program to start."""

    def begin(script):
        container = make_cgroup(f"docker-{ID}.scope")
        command = ("/bin/sh", "-c", script, mysqld)
        return spawn(*command, cgroup=container, stdin=subprocess.PIPE, text=True), container

    return begin


@pytest.fixture
def clock():
    return MovedClock()


@pytest.fixture
def source(clock):
    context = PodSourceContext(PodSettings(), (), MachineShape.uniform(2))
    opened = LocalPods(context, clock=clock)
    yield opened
    opened.close()


def programs(source):
    pods = source.pods()
    return [c.processes for pod in pods for c in pod.containers if c.runtime_id == ID]


@pytest.mark.parametrize("how", STARTS)
def test_an_exec_in_an_old_container_is_heard_and_makes_it_due(kernel, start, source, clock, how):
    seen = kernel.exec_count
    process, container = start(STARTS[how])
    source.executed(ExecutionNews(is_heard=True))
    until(lambda: programs(source) == [("sh",)])
    until(lambda: len((container / "cgroup.procs").read_text().split()) == SHELLS[how])

    def rests():
        clock.now += 60.0
        source.pods()
        return source.again_in_s() > RESTS_S

    until(rests)
    process.stdin.write("go\n")
    process.stdin.flush()

    def recognised():
        nonlocal seen
        found, seen = kernel.executions(seen)
        source.executed(ExecutionNews(tuple(found), is_heard=True))
        clock.now += min(source.again_in_s(), 0.1)
        return any("mysqld" in names for names in programs(source))

    moment = clock.now
    until(recognised)

    assert clock.now - moment < RESTS_S
