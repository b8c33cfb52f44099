"""What the kernel side counts, held against what the kernel and the threads themselves say."""

import errno
import os
import resource
import time
from contextlib import contextmanager, suppress

import pytest

from temper_core.errors import BpfError
from temper_plugin_tracer.kernel import NS_PER_S, Room, RowLimits
from temper_plugin_tracer.kernel_records import COUNTS, REST

LONG_S = 20.0
"""Longer than any of these tests, which end their windows themselves."""
ROUNDS = 10
"""A window may end before either of two threads that share a CPU had to wait for the other."""
MORE = 3
"""Wakes of a thread besides those that were played for: to begin with, and to tell the result."""

SLEEPER = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        time.sleep(0.001)
    print("done", flush=True)
"""
OVER_LOOPBACK = """
import os, resource, socket, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
listening = socket.create_server(("127.0.0.1", 0))
child = os.fork()
if child == 0:
    with socket.create_connection(listening.getsockname()) as server:
        while server.send(server.recv(1) or sys.exit()):
            pass
print("ready", flush=True)
client, _ = listening.accept()
print(child, flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        client.send(b"x")
        client.recv(1)
    print("done", flush=True)
"""
BIRTHS = """
import sys, threading
print("ready", flush=True)
def live(number):
    open("/proc/thread-self/comm", "w").write(f"brief-{number}")
for line in sys.stdin:
    for number in range(int(line)):
        thread = threading.Thread(target=live, args=(number,))
        thread.start()
        thread.join()
    print("done", flush=True)
"""


def waits_of(record):
    return sum(COUNTS.unpack(record.counts))


def test_a_ping_pong_pair_wakes_each_other_as_often_as_they_slept(kernel, make_pair):
    pair = make_pair(2_000)

    kernel.begin(LONG_S)
    ping_slept, pong_slept = pair.play()
    counted = kernel.end()

    assert ping_slept <= counted.edges[pair.pong, pair.ping] <= ping_slept + MORE
    assert pong_slept <= counted.edges[pair.ping, pair.pong] <= pong_slept + MORE
    assert max(ping_slept, pong_slept) > 100


def test_histograms_add_up_to_the_kernels_own_counts_of_each_thread(kernel, make_pair, asleep):
    pair = make_pair(1_000)
    tids = (pair.ping, pair.pong)
    before = {tid: asleep(tid) for tid in tids}

    kernel.begin(LONG_S)
    pair.play()
    after = {tid: asleep(tid) for tid in tids}
    counted = kernel.end()

    for tid in tids:
        assert waits_of(counted.parties[tid]) == after[tid].runs - before[tid].runs
        assert counted.parties[tid].waited_ns == after[tid].delay_ns - before[tid].delay_ns


def test_sleep_that_the_kernel_books_as_a_wait_is_none(
    kernel, moved_asleep, schedstat, tell, settle, names_in
):
    tids = [int(name) for name in names_in(f"/proc/{moved_asleep.pid}/task")]
    before = {tid: schedstat(tid) for tid in tids}
    time.sleep(0.3)

    kernel.begin(LONG_S)
    tell(moved_asleep)
    settle(moved_asleep.pid)
    counted = kernel.end()

    booked = {tid: schedstat(tid).delay_ns - before[tid].delay_ns for tid in tids}
    waited = {tid: counted.parties[tid].waited_ns for tid in tids}
    window_ns = counted.length_s * NS_PER_S
    assert all(waited[tid] <= min(booked[tid], window_ns) for tid in tids)
    if max(booked.values()) < window_ns:
        pytest.skip("the kernel has booked no sleep as a wait")
    behind = [ns for (waiter, _), (_, ns) in counted.blockings.items() if waiter in waited]
    assert sum(behind) <= sum(waited.values())


def test_a_wait_is_counted_in_the_bucket_of_its_length(kernel, make_pair, asleep):
    pair = make_pair(300)
    before = asleep(pair.pong)

    kernel.begin(LONG_S)
    pair.play()
    after = asleep(pair.pong)
    record = kernel.end().parties[pair.pong]

    counts = COUNTS.unpack(record.counts)
    least_us = sum(count * (1 << place >> 1) for place, count in enumerate(counts))
    most_us = sum(count << place for place, count in enumerate(counts))
    assert least_us * 1e3 <= record.waited_ns <= most_us * 1e3
    assert record.waited_ns == after.delay_ns - before.delay_ns


def test_who_spins_is_charged_for_as_long_as_others_waited_meanwhile(
    kernel, spinner, schedstat, tell, let_run
):
    waiter, other = spinner("waiter"), spinner("spinner")
    waiter.stdin.write("60\n")
    waiter.stdin.flush()
    let_run(waiter.pid)
    for each in (waiter, other):  # from now on they share the CPU with each other alone
        os.sched_setscheduler(each.pid, os.SCHED_RR, os.sched_param(1))

    for _ in range(ROUNDS):
        before, waited = schedstat(other.pid), schedstat(waiter.pid)
        kernel.begin(LONG_S)
        tell(other, "0.3")
        let_run(waiter.pid, 1)
        counted = kernel.end()
        ran_ns = schedstat(other.pid).run_ns - before.run_ns
        delay_ns = schedstat(waiter.pid).delay_ns - waited.delay_ns
        behind = {r: ns for (w, r), (_, ns) in counted.blockings.items() if w == waiter.pid}
        assert sum(behind.values()) <= delay_ns
        assert behind.get(other.pid, 0) < 1.02 * ran_ns + 4_000_000
        if behind.get(other.pid, 0) > 0.6 * ran_ns > 5_000_000:
            break
    else:
        pytest.fail(f"the spinner ran for {ran_ns} ns and was charged with {behind}")

    assert counted.parties[other.pid].comm.rstrip(b"\0") == b"spinner"


def test_waits_below_the_bound_blame_nobody(kernel, make_pair):
    pair = make_pair(500)

    kernel.begin(LONG_S, long_wait_s=100.0)
    pair.play()

    assert kernel.end().blockings == {}


def test_a_timer_that_fires_while_somebody_spins_is_nobodys_doing(
    kernel, spawn, spinner, cpu, tell
):
    sleeper, busy = spawn(SLEEPER, cpu), spinner("spin")
    busy.stdin.write("5\n")
    busy.stdin.flush()

    kernel.begin(LONG_S)
    tell(sleeper, "100")
    counted = kernel.end()

    assert counted.edges[0, sleeper.pid] >= 50
    assert counted.edges.get((busy.pid, sleeper.pid), 0) <= 5


def test_what_is_sent_over_the_loopback_is_the_senders_doing(kernel, spawn, tell, cpu):
    client = spawn(OVER_LOOPBACK, cpu)
    server = int(client.stdout.readline())

    kernel.begin(LONG_S)
    tell(client, "500")
    counted = kernel.end()

    for sender, receiver in ((client.pid, server), (server, client.pid)):
        wakers = {waker: n for (waker, wakee), n in counted.edges.items() if wakee == receiver}
        assert wakers[sender] >= 0.9 * sum(wakers.values())
        assert wakers[sender] > 50


def test_threads_that_came_and_went_have_names(kernel, spawn, tell):
    parent = spawn(BIRTHS)

    kernel.begin(LONG_S)
    tell(parent, "150")
    counted = kernel.end()

    children = [each for each in counted.parties.values() if each.tgid == parent.pid]
    assert len(children) + counted.nameless > 150
    assert {each.process[:6] for each in children} == {b"python"}


def test_of_edges_and_blockings_the_greatest_are_taken(kernel, make_pair, spinner, let_run):
    pair, spinners = make_pair(2_000), [spinner("one"), spinner("other")]
    for each in spinners:
        each.stdin.write("20\n")
        each.stdin.flush()

    kernel.begin(LONG_S)
    slept = pair.play()
    for each in spinners:
        let_run(each.pid, 20)
    counted = kernel.end(most=RowLimits(edges=2, blockings=1))

    # The pair's own two, unless others on this machine woke each other yet more often.
    assert [wakes >= min(slept) for wakes in counted.edges.values()] == [True, True]
    assert len(counted.blockings) == 1
    assert {pair.ping, pair.pong} < counted.parties.keys()


def test_edges_without_room_are_counted_as_lost(open_kernel, spawn, tell):
    kernel = open_kernel(Room(edges=16, blockings=1))
    parent = spawn(BIRTHS)

    kernel.begin(LONG_S)
    tell(parent, "150")
    counted = kernel.end()

    assert len(counted.edges) <= 16
    assert counted.lost > 50
    assert (
        sum(counted.edges.values()) <= counted.wakes <= sum(counted.edges.values()) + counted.lost
    )


def test_waits_of_threads_without_room_are_counted_all_the_same(open_kernel, make_pair, schedstat):
    kernel = open_kernel(Room(parties=1))
    pair = make_pair(500)
    before = schedstat(pair.ping).runs + schedstat(pair.pong).runs

    kernel.begin(LONG_S)
    pair.play()
    counted = kernel.end()

    ran = schedstat(pair.ping).runs + schedstat(pair.pong).runs - before
    assert list(counted.parties) == [REST]
    assert waits_of(counted.parties[REST]) >= ran
    assert counted.nameless > 0


def test_a_window_ends_by_itself_however_late_it_is_closed(kernel, make_pair):
    pair = make_pair(500)

    kernel.begin(0.02)
    time.sleep(0.1)
    pair.play()
    counted = kernel.end()

    assert counted.length_s == 0.02
    assert (pair.ping, pair.pong) not in counted.edges
    assert counted.kernel_s > 0


def test_one_window_knows_nothing_of_the_one_before(kernel, make_pair):
    first, second = make_pair(300), make_pair(300)
    kernel.begin(LONG_S)
    first.play()
    kernel.begin(LONG_S)  # the first was never closed
    second.play()

    counted = kernel.end()

    assert (first.ping, first.pong) not in counted.edges
    assert counted.edges[second.ping, second.pong] > 10


def test_what_each_event_cost_is_measured_while_counting(kernel, make_pair):
    pair = make_pair(3_000)

    kernel.begin(LONG_S)
    pair.play()
    counted = kernel.end()

    per_event_ns = counted.kernel_s * 1e9 / (counted.switches + counted.wakes)
    assert counted.switches >= 6_000
    assert 85 < per_event_ns < 20_000


def test_nothing_is_attached_outside_of_a_window(kernel, make_pair, descriptors):
    before = descriptors()

    kernel.begin(LONG_S)
    while_open = descriptors()
    kernel.end()

    assert len(while_open) == len(before) + 2
    assert descriptors() == before
    assert make_pair(100).play()[0] > 0


def test_what_cannot_all_be_attached_is_not_attached_at_all(kernel, almost_full):
    with almost_full(), pytest.raises(BpfError) as refused:
        kernel.begin(LONG_S)

    assert refused.value.errno == errno.EMFILE
    assert not kernel.is_open
    kernel.begin(LONG_S)
    assert kernel.end().switches >= 0


@pytest.fixture
def almost_full():
    """Leave this process room for one more descriptor."""

    @contextmanager
    def fill():
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        fillers = []
        try:
            with suppress(OSError):
                while True:
                    fillers.append(os.open("/dev/null", os.O_RDONLY))
            os.close(fillers.pop())
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for filler in fillers:
                os.close(filler)

    return fill
