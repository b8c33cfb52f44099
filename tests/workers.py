"""Shares the tests out to the workers of pytest-xdist (``-n``), as a plugin of pytest.

The tests of one file run on one worker and in order, so that fixtures of a module are made once.
Files that share something of the machine run on one worker, one after another.
"""

from fnmatch import fnmatchcase
from functools import cache

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = {
    "instances of tracefs: some remove those that nobody holds": (
        "tests/core/restoring/test_tracing_instances.py",
        "tests/tracer/capture/test_tracefs_recorder.py",
    ),
    "agents of this node: they hold one lock": (
        "tests/core/agent/test_agent_*.py",
        "tests/console/test_top_on_a_terminal.py",
        "tests/core/restoring/*",
        "tests/installed/door/*",
        "tests/installed/test_example_plugin.py",
        "tests/tracer/test_watching_wakes.py",
    ),
    "port 9001, the only one that the Perfetto UI loads traces from": (
        "tests/tracer/capture/test_in_perfetto_ui.py",
        "tests/tracer/trace/test_perfetto_ui.py",
    ),
    "wheels, which are built once": (
        "tests/installed/test_private_pack.py",
        "tests/installed/test_wheels.py",
    ),
    "temper.slice of this node": (
        "tests/core/test_launch.py",
        "tests/core/node/test_local_source.py",
    ),
}
"""What is shared, and the files that share it."""
SLOW = (
    "tests/trainer/refining/test_train_run.py",
    "agents of this node: they hold one lock",
    "tests/core/cli/test_kill_switch.py",
    "tests/trainer/refining/test_arm_traces.py",
    "tests/core/cli/test_command_line.py",
    "tests/dashboard/test_page.py",
    "tests/rightsizer/test_fleet.py",
    "tests/core/test_documentation_site.py",
    "tests/rightsizer/test_rightsize_agent.py",
    "tests/hostile_text/test_commands.py",
    "tests/rightsizer/test_backtest.py",
    "tests/hostile/test_connections.py",
    "tests/tracer/capture/test_kubectl_trace.py",
)
"""Units of work that take a minute or more, the slowest first. The last lines of .ci/run name the
slowest files. Handed out last, such a unit would leave the other workers idle."""


@cache
def unit_of(path: str) -> str:
    """Return the name of the unit of work that the tests of a file belong to."""
    for shared, patterns in TOGETHER.items():
        if any(fnmatchcase(path, pattern) for pattern in patterns):
            return shared
    return path


class ByUnit(LoadScopeScheduling):
    """Hands out units of work, the slow ones first, then the largest."""

    def _assign_work_unit(self, node):
        for unit in reversed(SLOW):
            if unit in self.workqueue:
                self.workqueue.move_to_end(unit, last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid):
        return unit_of(nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getoption("dist") != "loadfile":
        return None
    return ByUnit(config, log)
