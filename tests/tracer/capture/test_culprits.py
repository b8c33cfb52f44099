"""Real scenes whose culprit is known: the analysis of a capture names it."""

import os
import re
import socket
import time
from pathlib import Path

import pytest

from temper_core.testing import make_snapshot, make_thread
from temper_plugin_tracer.capture.request import TraceRequest
from temper_plugin_tracer.trace.analyzing import analyze
from temper_plugin_tracer.trace.reading import open_trace
from tests.core.observe.conftest import throttled
from tests.tracer.capture.conftest import SLEEPER, SPIN, schedstat, wait_until_recording

__all__ = ["throttled"]

LONG_S = 30.0
ROUNDS, ENOUGH_S = 60, 10.0
"""Fewer rounds do where each has to wait long, as on a busy host. The capture ends after LONG_S."""
WORK_S, SHORT_S = 1.0, 0.1
THROTTLED_NS = 300_000_000
EVERY_THREAD = 10_000
"""Rows of the report. On a busy host many threads wait longer than the one that is asked about."""
SHARE_OF_DELAY = 0.05
"""The kernel counts a wait from the queueing on, and a trace from the event before it."""
COUNTED = 0.9
"""Of the time that the kernel counts as throttled. It counts outside of the trace, too."""
OTHERS_CPU = max(os.sched_getaffinity(0))
CPU = min(os.sched_getaffinity(0))


def placed(body):
    """Return a script that is named by its first argument, on the CPU of its second one."""
    place = """
import os, socket, sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
os.sched_setaffinity(0, {int(sys.argv[2])})
"""
    return f"{place}\n{body}"


def preferred(body):
    """Return such a script that has a multiple of the share of all others on a busy host."""
    weight = """
os.setsid()
os.nice(-5)
if os.path.exists("/proc/self/autogroup"): open("/proc/self/autogroup", "w").write("-5")
"""
    return placed(f"{weight}\n{body}")


HOG = preferred("""
print("ready", flush=True)
while True: pass
""")
REAL_TIME = placed("""
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
print("ready", flush=True)
while True:
    ends = time.thread_time() + 0.02
    while time.thread_time() < ends: pass
    time.sleep(0.01)
""")
SPINNER = placed("""
print("ready", flush=True)
for line in sys.stdin:
    ends = time.monotonic() + float(line)
    while time.monotonic() < ends: pass
    print("done", flush=True)
""")
REFRESHER = placed("""
print("ready", flush=True)
while True: open("/proc/sys/vm/stat_refresh").read()
""")
"""Has a kworker of each CPU fold the counters of that CPU (vmstat_refresh in mm/vmstat.c)."""
SENDER = preferred("""
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
while True:
    out.sendto(b"x" * 1024, ("127.0.0.1", int(sys.argv[3])))
    for _ in range(400): pass
""")
"""Over the loopback the sender's CPU receives, in a softirq. Without a pause there are more events
than a busy host can write."""


@pytest.fixture
def captured(captures, finish):
    """Capture the node while something is done, and return the trace's report.

    The culprits are ended before the trace is written, which would have to wait for them.
    """

    def capture(work, *culprits, snapshot=None, process=None):
        if snapshot is not None:
            captures.tell(snapshot)
        begun = captures.begin(TraceRequest(seconds=LONG_S, process=process), "me")
        wait_until_recording()
        work()
        captures.end(begun["id"], "me")
        for culprit in culprits:
            culprit.kill()
        entry = finish(captures, begun["id"])
        assert entry["lost"] == 0
        return analyze(open_trace(captures.trace(begun["id"])), rows=EVERY_THREAD)

    return capture


def some_rounds(tell, victim):
    """Let *victim* sleep and work ``ROUNDS`` times, or for ``ENOUGH_S``."""
    ends = time.monotonic() + ENOUGH_S
    for _ in range(ROUNDS):
        tell(victim, 1)
        if time.monotonic() >= ends:
            return


def subject(report, name, level="thread"):
    (found,) = [one for one in report.subjects[level] if one.name == name]
    return found


def shares(waiter, level="thread"):
    """Return the shares of a wait, which add up to all of it."""
    found = waiter.blockers[level]
    assert sum(share.ns for share in found) == waiter.wait_ns
    return {share.party: share for share in found}


def pod_thread(process, name, pod, layer):
    return make_thread(
        name, tid=process.pid, tgid=process.pid, namespace="shop", pod=pod, layer=layer
    )


@pytest.mark.parametrize(
    ("pod", "layer", "relation"),
    [
        ("mysql-0", "high", "same pod"),
        ("web-0", "high", "same layer"),
        ("batch-0", "open", ""),
    ],
)
def test_a_neighbour_on_the_cpu(captured, spawn, tell, pod, layer, relation):
    victim, hog = spawn(SLEEPER, CPU), spawn(HOG, "neighbour", CPU)
    node = make_snapshot(
        pod_thread(victim, "victim", "mysql-0", "high"),
        pod_thread(hog, "neighbour", pod, layer),
        monotonic_s=time.monotonic(),
    )

    before = schedstat(victim.pid)[1]
    report = captured(lambda: some_rounds(tell, victim), hog, snapshot=node)

    waiter = subject(report, f"python[{victim.pid}]")
    first = waiter.blockers["thread"][0]
    assert (first.party, first.kind) == (f"neighbour[{hog.pid}]", "thread")
    assert first.relation == relation
    assert shares(waiter, "pod")[f"shop/{pod}"].ns >= first.ns
    assert shares(waiter, "layer")[layer].ns >= first.ns
    delay_ns = schedstat(victim.pid)[1] - before
    assert waiter.wait_ns == pytest.approx(delay_ns, rel=SHARE_OF_DELAY)


def test_of_a_selected_process_the_neighbour_is_told_and_no_other_waits(captured, spawn, tell):
    """Of the others the trace has some events, by which they seem to wait."""
    victim, hog = spawn(SLEEPER, CPU), spawn(HOG, "neighbour", CPU)

    report = captured(lambda: some_rounds(tell, victim), hog, process=victim.pid)

    [waiter] = report.subjects["thread"]
    assert waiter.name == f"python[{victim.pid}]"
    assert waiter.blockers["thread"][0].party == f"neighbour[{hog.pid}]"
    assert {wake.woken for wake in report.slowest} == {waiter.name}
    assert {edge.woken for edge in report.edges} == {waiter.name}
    assert report.whole_threads == 1 < report.threads


def test_a_real_time_thread(captured, spawn, tell):
    victim, hog = spawn(SPINNER, "victim", CPU), spawn(REAL_TIME, "audio", CPU)

    report = captured(lambda: tell(victim, WORK_S), hog)

    found = shares(subject(report, f"victim[{victim.pid}]"))
    culprit = found[f"audio[{hog.pid}]"]
    assert culprit.kind == "real-time thread"
    assert culprit.ns == max(share.ns for share in found.values())


def test_a_kworker(captured, spawn, tell):
    victim = spawn(SPINNER, "victim", CPU)
    refresher = spawn(REFRESHER, "refresher", OTHERS_CPU)

    report = captured(lambda: tell(victim, WORK_S), refresher)

    found = shares(subject(report, f"victim[{victim.pid}]"))
    workers = [share for name, share in found.items() if re.match(rf"kworker/{CPU}:\d", name)]
    assert workers
    assert {share.kind for share in workers} == {"kernel thread"}


def test_softirqs(captured, spawn, tell):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        victim = spawn(SLEEPER, CPU)
        sender = spawn(SENDER, "sender", CPU, receiver.getsockname()[1])

        report = captured(lambda: some_rounds(tell, victim), sender)

    found = shares(subject(report, f"python[{victim.pid}]"))
    assert found["(softirq NET_RX)"].kind == "softirq"
    assert found["(softirq NET_RX)"].percent > 1
    assert found[f"sender[{sender.pid}]"].ns > 0


@pytest.mark.parametrize("has_neighbour", [False, True], ids=["alone", "beside-a-neighbour"])
def test_the_quota_of_its_own_pod(captured, spawn, tell, throttled, has_neighbour):
    """The neighbour that uses the CPU meanwhile is not the cause."""
    path, roots, join = throttled
    victim = spawn(SPINNER, "victim", CPU)
    join(victim.pid)
    neighbours = [spawn(SPIN, CPU)] if has_neighbour else []
    before = throttled_ns(path, roots)

    def work():
        while throttled_ns(path, roots) - before < THROTTLED_NS:
            tell(victim, SHORT_S)

    report = captured(work, *neighbours)

    found = shares(subject(report, f"victim[{victim.pid}]"))
    assert found["(throttled)"].kind == "throttled"
    assert found["(throttled)"].ns > COUNTED * (throttled_ns(path, roots) - before)


def throttled_ns(path, roots):
    """Return for how long the kernel has counted the cgroup as throttled."""
    words = Path(roots.cpu, path, "cpu.stat").read_text().split()
    return int(words[words.index("throttled_time") + 1])
