"""Real containers that begin their program after a while, recognised without any help of BPF."""

import select
import shutil
import subprocess
import time

import pytest

from temper_core.node import builtin_plugin
from temper_core.node.pod_watch import open_pod_source
from temper_core.plugin_host import PluginHost
from temper_core.records.contributions import PodSourceContext
from temper_core.records.machine import MachineShape
from temper_core.settings.models import PodSettings
from tests.patience import PATIENCE_S

ID = "0123456789abcdef" * 4
STARTS = {
    "by exec": 'sleep 5; exec "$0" 600',
    "as a child": 'sleep 5; "$0" 600; true',
    "by exec of a child": 'sh -c \'sleep 5; exec "$0" 600\' "$0"; true',
}


@pytest.fixture
def mysqld(tmp_path):
    """A real program of that name, which sleeps for as long as it is told."""
    return shutil.copy(shutil.which("sleep"), tmp_path / "mysqld")


@pytest.fixture
def watch():
    """The pods of this machine, as the agent looks at them."""
    host = PluginHost()
    host.add(builtin_plugin, "core")
    opened = open_pod_source(
        host, "local", PodSourceContext(PodSettings(), (), MachineShape.uniform(2))
    )
    yield opened
    opened.close()


def programs(watch):
    return [
        container.processes
        for pod in watch.pods
        for container in pod.containers
        if container.runtime_id == ID
    ]


@pytest.mark.parametrize("how", STARTS)
def test_a_program_that_begins_after_seconds_is_recognised_soon(make_cgroup, watch, mysqld, how):
    # Before, a first process was read three times and then every 155 to 411 seconds.
    container = make_cgroup(f"docker-{ID}.scope")
    enter = f'echo $$ > "{container}/cgroup.procs"; exec /bin/sh -c "$0" "$@"'
    process = subprocess.Popen(["/bin/sh", "-c", enter, STARTS[how], mysqld])
    seen, ends = [], time.monotonic() + PATIENCE_S

    while not any("mysqld" in names for names in seen):
        assert time.monotonic() < ends, f"never recognised: {seen}"
        watch.look()
        seen += programs(watch)
        select.select([watch.fileno()], [], [], watch.rest_s(2.0))

    assert ("sh",) in seen
    process.kill()
    process.wait()
