"""The kernel side of wakes in the running kernel, and real threads that wake and delay others."""

import json
import os
import time
from pathlib import Path

import pytest
from attrs import define, field, frozen

from temper_core import BpfError, explain_bpf_error
from temper_plugin_tracer.instrument import Tracer
from temper_plugin_tracer.kernel import WakeKernel
from temper_plugin_tracer.state import WakeState
from temper_plugin_tracer.wait_totals import WaitTotals
from tests.core.observe.conftest import (
    let_run,
    moved_asleep,
    names_in,
    settle,
    spawn,
    tell,
    wait_until,
)
from tests.core.server.conftest import start_server
from tests.core.server.fake_view import FakeView

__all__ = ["let_run", "moved_asleep", "names_in", "settle", "spawn", "tell", "wait_until"]

PAIR = """
import json, os, resource, sys, time
rounds, cpu = int(sys.argv[1]), int(sys.argv[2])
os.sched_setaffinity(0, {cpu})
there, back, done = os.pipe(), os.pipe(), os.pipe()
def voluntary():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
def play(read_from, write_to, begins):
    before = voluntary()
    for _ in range(rounds):
        if begins:
            os.write(write_to, b"x")
        if not os.read(read_from, 1):
            os._exit(0)
        if not begins:
            os.write(write_to, b"x")
    return voluntary() - before
child = os.fork()
if child == 0:
    os.close(there[1])
    os.close(back[0])
    open("/proc/self/comm", "w").write("pong")
    blocked = play(there[0], back[1], False)
    os.write(done[1], blocked.to_bytes(8, "little"))
    os.read(0, 1)
os.close(there[0])
os.close(back[1])
open("/proc/self/comm", "w").write("ping")
print("ready", child, sep="\\n", flush=True)
for line in sys.stdin:
    blocked = play(back[0], there[1], True)
    print(json.dumps([blocked, int.from_bytes(os.read(done[0], 8), "little")]), flush=True)
"""
SPIN = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
open("/proc/self/comm", "w").write(sys.argv[2])
print("ready", flush=True)
for line in sys.stdin:
    ends = time.monotonic() + float(line)
    while time.monotonic() < ends:
        pass
    print("done", flush=True)
"""


@frozen
class Pair:
    """Two processes on one CPU that pass a byte to and fro; ``play`` says how often each slept.

    ``begin`` only has them begin.
    """

    ping: int
    pong: int
    play: object
    begin: object


@frozen
class Schedstat:
    """What the kernel says of a thread: how long it ran and waited, how often it got a CPU."""

    run_ns: int
    delay_ns: int
    runs: int

    @classmethod
    def of(cls, tid):
        return cls(*map(int, Path(f"/proc/{tid}/schedstat").read_text().split()))


@define(eq=False)
class FakeWatch:
    """A watch of which every answer is a plain attribute; ``wanted`` are the seconds asked for."""

    wanted: list = field(factory=list)
    window: object = None
    reason: str = ""
    turned: object = None

    @property
    def state(self):
        until = time.monotonic() + sum(self.wanted) if self.wanted else 0.0
        return WakeState(until, self.reason, self.window)

    def want(self, seconds):
        self.wanted.append(seconds)

    def turn(self, _now, snapshot):
        self.turned = snapshot

    def recent(self, _now, period_s):
        return self.window if period_s < 100 else None

    def defects(self, _now):
        return (f"wakes: {self.reason}",) if self.reason else ()

    def close(self):
        self.wanted.append("closed")


def view_of(watch):
    """Return an agent that only looks like one and has the tracer's endpoints."""
    tracer = Tracer(watch, WaitTotals())
    return FakeView(served=[("tracer", endpoint) for endpoint in tracer.endpoints()])


@pytest.fixture
def fake_watch():
    return FakeWatch()


@pytest.fixture
def start(fake_watch, tmp_path):
    """Start a server with the endpoints of *fake_watch*; it is stopped when the test ends."""
    running = []

    def start_one(token_file=None):
        running.append(start_server(view_of(fake_watch), tmp_path, token_file))
        return running[-1]

    yield start_one
    for agent in running:
        agent.close()


@pytest.fixture
def agent(start):
    return start()


@pytest.fixture(scope="module")
def lasting_watch():
    return FakeWatch()


@pytest.fixture(scope="module")
def lasting_agent(lasting_watch, tmp_path_factory):
    running = start_server(view_of(lasting_watch), tmp_path_factory.mktemp("lasting"), None)
    yield running
    running.close()


@pytest.fixture(scope="session")
def bpf_allowed():
    """Skip where this kernel does not take the object, with the reason that would be told."""
    try:
        WakeKernel.open().close()
    except BpfError as error:
        pytest.skip(explain_bpf_error(error).reason)


@pytest.fixture
def descriptors():
    """List what this process holds open."""
    return lambda: sorted(each.name for each in Path("/proc/self/fd").iterdir())


@pytest.fixture
def open_kernel(request, descriptors):
    """Load the kernel side for one test; none of its descriptors may be left."""
    request.getfixturevalue("bpf_allowed")
    before, opened = descriptors(), []

    def load(room=None):
        opened.append(WakeKernel.open(room))
        return opened[-1]

    yield load
    for kernel in opened:
        kernel.close()
    assert descriptors() == before


@pytest.fixture
def kernel(open_kernel):
    return open_kernel()


@pytest.fixture
def cpu():
    """A CPU that this process may use."""
    return min(os.sched_getaffinity(0))


@pytest.fixture
def make_pair(spawn, tell, cpu):
    """Start a pair that plays so many rounds, when told to."""

    def make(rounds=2_000):
        ping = spawn(PAIR, rounds, cpu)
        pong = int(ping.stdout.readline())

        def begin():
            ping.stdin.write("go\n")
            ping.stdin.flush()

        return Pair(ping.pid, pong, lambda: json.loads(tell(ping)), begin)

    return make


@pytest.fixture
def schedstat():
    return Schedstat.of


@pytest.fixture
def asleep(wait_until):
    """Wait until a thread sleeps in a pipe, and say what the kernel has counted of it.

    Its state says so a little earlier, when it still has to leave its CPU.
    """

    def counters(tid):
        where = Path(f"/proc/{tid}/wchan")
        wait_until(lambda: "pipe" in where.read_text(), "it is awake")
        return Schedstat.of(tid)

    return counters


@pytest.fixture
def spinner(spawn, cpu):
    """Start a process that keeps the CPU busy for as many seconds as it is told."""
    return lambda name: spawn(SPIN, cpu, name)
