import subprocess
import time
from pathlib import Path

import pytest
from attrs import frozen

from temper_core.records.contributions import PodSourceContext
from temper_core.records.machine import MachineShape
from temper_core.settings.models import PodSettings
from tests.core.node.trees import make_hierarchy


@frozen
class Host:
    """A made-up host: its /proc, its cgroup root, and the hierarchies in it."""

    proc: Path
    cgroups: Path

    def context(self, *rules, cpus=4, node="", **options):
        return PodSourceContext(
            PodSettings(**options),
            rules,
            MachineShape.uniform(cpus),
            str(self.proc),
            str(self.cgroups),
            node,
        )


@pytest.fixture
def host(tmp_path):
    """A host with cgroup v2 and nothing in it."""
    (tmp_path / "proc").mkdir()
    return Host(tmp_path / "proc", make_hierarchy(tmp_path / "cgroup"))


@pytest.fixture
def sleeper():
    """A real process named ``sleep``."""
    process = subprocess.Popen(["sleep", "60"])
    # It gets its name only after Popen has returned.
    for _ in range(1000):
        if Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n":
            break
        time.sleep(0.01)
    yield process
    process.kill()
    process.wait()
