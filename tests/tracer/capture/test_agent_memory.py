"""The memory of a whole agent, before and after captures."""

import re

from tests.tracer.capture.conftest import MIB, STORM

TRACE_BYTES = 16 * MIB
FEWEST_BYTES, MOST_GROWTH = 12 * MIB, 8 * MIB
"""The events of a trace have 32 bytes each before they are encoded. An agent that had them or the
trace in memory would grow by more."""
IN_A_ROW = 10


def test_an_agent_does_not_grow_by_captures(bpf, host, spawn, tmp_path):
    del bpf
    agent, out = host.settings("agent"), tmp_path / "trace"

    def capture(*options):
        ended = host.temper("trace", "capture", "--settings", str(agent), *options)
        assert ended.returncode == 0, ended.stderr

    process = host.start(agent)
    try:
        capture("--seconds", "0.2")
        pid = host.pid_of_agent()
        before = peak_of(host, pid)
        spawn(STORM)
        capture("--seconds", "30", f"--mib={TRACE_BYTES // MIB}", "--out", str(out))
        for _ in range(IN_A_ROW):
            capture("--seconds", "0.2")
        after = peak_of(host, pid)
    finally:
        process.terminate()
        process.wait()
    assert out.stat().st_size > FEWEST_BYTES
    assert after - before < MOST_GROWTH


def peak_of(host, pid):
    """Return the most bytes that a process of the host has had in memory."""
    status = host.shell(f"cat /proc/{pid}/status")
    return int(re.findall(r"^VmHWM:\s+(\d+)", status, re.MULTILINE)[0]) * 1024
