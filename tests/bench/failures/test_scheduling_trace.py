"""The trace of the scheduler is one of the real kernel, and leaves nothing behind."""

import subprocess
import sys

from bench.failures.scheduling_trace import NAME, recorded
from tests.own_tracefs import OWN_MOUNTS, skip_without_tracefs

PROGRAM = """
import sys, time
from pathlib import Path
from bench.failures.scheduling_trace import TRACEFS, recorded
before = time.monotonic()
with recorded(Path(sys.argv[1])) as trace:
    time.sleep(0.2)
    trace.stop()
print(before, time.monotonic(), *(path.name for path in (TRACEFS / "instances").iterdir()))
"""


def test_a_trace_has_the_switches_of_the_time_in_between(tmp_path):
    skip_without_tracefs()
    file = tmp_path / "here.trace"

    command = [*OWN_MOUNTS, sys.executable, "-c", PROGRAM, file]
    done = subprocess.run(command, check=True, capture_output=True, text=True)

    before, after, *instances = done.stdout.split()
    switches = [line for line in file.read_text().splitlines() if "sched_switch:" in line]
    times = [float(line.split("sched_switch:")[0].split()[-1].rstrip(":")) for line in switches]
    assert times
    assert float(before) - 0.001 <= min(times)
    assert max(times) <= float(after)
    assert NAME not in instances


def test_without_a_file_nothing_is_recorded(tmp_path):
    with recorded(None, tmp_path) as trace:
        assert trace is None
    assert not list(tmp_path.iterdir())
