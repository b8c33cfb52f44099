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


@cache
def unit_of(path: str) -> str:
    """Return the name of the unit of work that the tests of a file belong to."""
    for shared, patterns in TOGETHER.items():
        if any(fnmatchcase(path, pattern) for pattern in patterns):
            return shared
    return path


class ByUnit(LoadScopeScheduling):
    """Hands out units of work, the largest first."""

    def _split_scope(self, nodeid):
        return unit_of(nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getoption("dist") != "loadfile":
        return None
    return ByUnit(config, log)
