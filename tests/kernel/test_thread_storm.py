"""A capture on this machine's own kernel, while 20,000 threads live that all wake each other up."""

import time

import pytest

from tests.core.observe.conftest import spawn, tell
from tests.tracer.capture.agent_process import agent, helper_of, outcome_of
from tests.tracer.capture.conftest import LONG_S, MIB, bpf, wait_until_recording

__all__ = ["bpf", "spawn", "tell"]

MANY, FEW = 20_000, 1_000
HELPER_BYTES = 256 * MIB
LIVING = """
import sys, threading, time
threading.stack_size(131072)
go = threading.Event()
def live():
    go.wait()
    while True: time.sleep(0.5)
for _ in range(int(sys.argv[1])): threading.Thread(target=live, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    go.set()
    print("done", flush=True)
"""


@pytest.mark.usefixtures("bpf")
def test_a_storm_of_living_threads_is_captured_within_the_bounds(tmp_path, spawn, tell):
    threads = spawn(LIVING, MANY)
    process = agent(tmp_path, seconds=LONG_S, bytes=4 * MIB)
    helper_of(process)
    wait_until_recording(process.pid)
    tell(threads)
    time.sleep(3.0)
    threads.kill()
    outcome = outcome_of(process)
    entry = outcome["entry"]
    print(outcome)  # noqa: T201 - the figures of docs/traces.md
    assert (entry["state"], entry["ended_by"]) == ("finished", "bytes")
    assert entry["bytes"] <= 4 * MIB
    assert entry["threads"] > FEW
    assert outcome["helpers_peak_bytes"] < HELPER_BYTES
    assert outcome["grown_bytes"] < MIB
