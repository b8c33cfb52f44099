"""What the BPF recorder records, held against what the kernel says of the threads itself."""

import os
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from temper_plugin_tracer.capture.bounds import Bounds, Ending
from temper_plugin_tracer.capture.bpf_recorder import BpfRecorder, pause_s, ring_bits
from temper_plugin_tracer.capture.kernel_layout import (
    EXITED,
    FORKED,
    LIVES,
    NEAR_NS,
    RENAMED,
    names_of,
)
from temper_plugin_tracer.capture.raw_file import RawFile
from temper_plugin_tracer.capture.recording import record
from temper_plugin_tracer.capture.selection import CgroupChoice, Selection
from temper_plugin_tracer.capture.unlinked_file import UnlinkedFile
from temper_plugin_tracer.trace.events import Kind
from tests.tracer.capture.conftest import (
    HIDDEN_PROCESS,
    SLEEPER,
    busy,
    merged,
    run_of,
    schedstat,
)

ROUNDS, MANY = 200, 10_000_000
PATIENT_SHARE = 0.02
"""Run time by the trace against the kernel's own count, which it takes elsewhere in a switch: some
3.5 us a run apart, more on a slow machine."""
WORK_S = 0.002

pytestmark = pytest.mark.usefixtures("bpf")


def recorded(work, selection=None, **options):
    """Return all that is recorded while *work* is done."""
    with BpfRecorder.open(selection or Selection(), **options) as recorder:
        recorder.begin()
        drains = [recorder.drain()]
        work()
        recorder.end()
        drains.append(recorder.drain())
        return drains, recorder.losses()


def test_counts_and_run_time_of_a_thread_under_load_agree_with_schedstat(spawn, tell):
    with busy(spawn, tell, ROUNDS, WORK_S) as (sleeper, go):
        stats = []

        def work():
            stats.append(schedstat(sleeper.pid))
            go()
            time.sleep(0.05)  # it is asleep again, at its standard input
            stats.append(schedstat(sleeper.pid))

        drains, losses = recorded(work)
    before, after = stats
    runs, run_ns = run_of(merged(drains), sleeper.pid)
    assert losses.count == 0
    assert runs == after[2] - before[2]
    assert runs > ROUNDS
    assert run_ns is None or run_ns == pytest.approx(after[0] - before[0], rel=PATIENT_SHARE)


def test_every_switch_continues_what_ran_before_on_its_cpu(spawn, tell):
    with busy(spawn, tell, ROUNDS) as (_, go):
        drains, _ = recorded(go)
    events = merged(drains)
    switches = events[events["kind"] == Kind.SWITCH]
    for cpu in set(switches["cpu"].tolist()):
        own = switches[switches["cpu"] == cpu]
        continues = own["prev"][1:] == own["next"][:-1]
        assert (continues | (own["tgid"][:-1] == HIDDEN_PROCESS)).all()
        assert (own["ns"][1:] > own["ns"][:-1]).all()


def test_handlers_begin_and_end_in_turn(spawn, tell):
    with busy(spawn, tell, ROUNDS) as (_, go):
        drains, _ = recorded(go)
    events = merged(drains)
    for begins, ends in (
        (Kind.INTERRUPT_BEGINS, Kind.INTERRUPT_ENDS),
        (Kind.SOFTIRQ_BEGINS, Kind.SOFTIRQ_ENDS),
    ):
        for cpu in set(events["cpu"].tolist()):
            own = events[
                (events["cpu"] == cpu) & ((events["kind"] == begins) | (events["kind"] == ends))
            ]
            if begins is Kind.SOFTIRQ_BEGINS:
                kinds = own["kind"].tolist()
                assert all(one != other for one, other in pairwise(kinds))


def test_a_thread_that_lives_is_named_and_a_new_one_is_followed(spawn):
    sleeper = spawn("import sys; print(1, flush=True); sys.stdin.read()")
    script = "open('/proc/self/comm', 'w').write('renamed-once')"
    made = []

    def work():
        child = subprocess.Popen([sys.executable, "-S", "-c", script])
        child.wait()
        made.append(child.pid)

    drains, losses = recorded(work)
    names = [record for drained in drains for record in drained.names]
    kinds = {(int(each["tid"]), int(each["kind"])) for each in names}
    assert (sleeper.pid, LIVES) in kinds
    assert {(made[0], FORKED), (made[0], RENAMED), (made[0], EXITED)} <= kinds
    assert (made[0], "renamed-once") in names_of(drains[1].names)
    assert losses.names == 0


def test_of_a_selected_process_all_is_recorded_and_little_else(spawn, tell):
    """A second CPU, on which it never runs, is not in the trace."""
    cpus = sorted(os.sched_getaffinity(0))
    sleeper = spawn(SLEEPER, cpus[0])
    other = spawn(SLEEPER, cpus[-1])
    stats = []

    def work():
        stats.append(schedstat(sleeper.pid))
        tell(sleeper, ROUNDS)
        time.sleep(0.05)
        stats.append(schedstat(sleeper.pid))
        tell(other, ROUNDS)

    drains, losses = recorded(work, Selection("process", processes=(sleeper.pid,)))
    events = merged(drains)
    runs, _ = run_of(events, sleeper.pid)
    assert losses.count == 0
    assert runs == stats[1][2] - stats[0][2]
    wakings = events[events["kind"] == Kind.WAKING]
    assert (wakings["next"] == sleeper.pid).sum() >= ROUNDS
    if len(cpus) > 1:
        switches = events[events["kind"] == Kind.SWITCH]
        elsewhere = switches[switches["cpu"] != cpus[0]]
        assert len(elsewhere) == 0


@pytest.mark.parametrize("objects", [("recorder",), ("recorder_plain",)])
def test_the_threads_of_a_selection_are_noted_as_such(spawn, objects):
    sleeper, _ = spawn(SLEEPER), spawn(SLEEPER)
    selection = Selection("process", processes=(sleeper.pid,))

    with BpfRecorder.open(selection, bits=8, objects=objects) as recorder:
        recorder.begin()
        recorder.end()
        names = recorder.drain().names

    assert names["tid"][names["is_selected"] > 0].tolist() == [sleeper.pid]


def test_a_child_of_a_selected_process_is_selected(spawn, tell):
    forker = spawn(
        "import os, sys, time\n"
        "print('ready', flush=True)\n"
        "for line in sys.stdin:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        for _ in range(20): time.sleep(0.001)\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "    print(child, flush=True)\n"
    )
    told = []
    drains, _ = recorded(
        lambda: told.append(int(tell(forker))), Selection("process", processes=(forker.pid,))
    )
    assert run_of(merged(drains), told[0])[0] >= 20


def test_a_selected_cgroup_is_recorded_with_those_below(spawn, tell, cgroup):
    _, folder = cgroup
    sleeper, below = spawn(SLEEPER), folder / "container"
    below.mkdir()
    try:
        (below / "cgroup.procs").write_text(str(sleeper.pid))
        choice = CgroupChoice(folder.stat().st_ino, 1)
        stats = []

        def work():
            stats.append(schedstat(sleeper.pid))
            tell(sleeper, ROUNDS)
            time.sleep(0.05)
            stats.append(schedstat(sleeper.pid))

        drains, _ = recorded(work, Selection("cgroup", cgroups=(choice,)))
        runs, _ = run_of(merged(drains), sleeper.pid)
        assert runs == stats[1][2] - stats[0][2]
        noted = {int(each["tid"]): int(each["cgroup"]) for each in drains[0].names}
        assert noted[sleeper.pid] == below.stat().st_ino
        selected = {int(each["tid"]) for each in drains[0].names if each["is_selected"]}
        assert selected == {sleeper.pid}
    finally:
        sleeper.kill()
        sleeper.wait()
        below.rmdir()


def test_a_full_ring_keeps_the_oldest_events_and_counts_the_others(spawn, tell):
    with busy(spawn, tell, 10 * ROUNDS) as (_, go):
        drains, losses = recorded(go, bits=6)
    assert losses.count > 0
    assert all(len(events) < 64 for events in drains[1].events.values())
    assert sum(losses.by_cpu.values()) == losses.count


def test_a_drain_is_due_when_a_ring_fills_or_as_many_events_wait_as_are_asked_for(spawn, tell):
    with (
        busy(spawn, tell, 10 * ROUNDS) as (_, go),
        BpfRecorder.open(Selection(), bits=12) as recorder,
    ):
        assert not recorder.is_due(1)
        recorder.begin()
        go()
        recorder.end()

        assert recorder.is_due(1_000_000)
        recorder.drain()
        assert not recorder.is_due(1)


def waited_s(recorder, seconds, most=MANY):
    """Return how long the recorder waits for a drain to be due."""
    began = time.monotonic()
    recorder.wait(seconds, most)
    return time.monotonic() - began


def test_a_wait_ends_when_a_ring_has_filled_by_a_part_and_not_before(spawn, tell):
    sleeper = spawn(SLEEPER)
    selection = Selection("process", processes=(sleeper.pid,))
    with BpfRecorder.open(selection, bits=12) as recorder:
        recorder.begin()
        quiet_s = waited_s(recorder, 0.3)
        tell(sleeper, 10 * ROUNDS)
        filled_s = waited_s(recorder, 20)

        assert quiet_s >= 0.3
        assert filled_s < 10
        assert recorder.is_due(MANY)
        time.sleep(NEAR_NS / 1e9)  # until its CPU is left out again
        recorder.drain()
        recorder.wait(0, MANY)
        assert waited_s(recorder, 0.3) >= 0.3


def test_a_wait_ends_after_more_signals_than_there_is_room_for(spawn, tell):
    sleeper = spawn(SLEEPER)
    selection = Selection("process", processes=(sleeper.pid,))
    with BpfRecorder.open(selection, bits=4) as recorder:
        recorder.begin()
        for _ in range(3):
            tell(sleeper, 10 * ROUNDS)
            assert waited_s(recorder, 20) < 10
            assert recorder.drain().count > 0


def test_a_wait_is_short_while_a_bound_may_be_reached_without_a_signal(spawn):
    sleeper = spawn(SLEEPER)
    selection = Selection("process", processes=(sleeper.pid,))
    with BpfRecorder.open(selection, bits=12) as recorder:
        recorder.begin()

        assert waited_s(recorder, 20, most=100) < 10


def test_a_quiet_recording_is_looked_at_twice_a_second(spawn, tmp_path):
    sleeper = spawn(SLEEPER)
    selection = Selection("process", processes=(sleeper.pid,))
    looks = []
    with BpfRecorder.open(selection) as recorder, UnlinkedFile.create(tmp_path) as file:
        recorded = record(
            recorder,
            RawFile(file.descriptor),
            file.descriptor,
            Bounds(seconds=1.2, free_bytes=0),
            lambda: looks.append(1),
        )

    assert recorded.ending == Ending.SECONDS
    assert 1 <= len(looks) <= 3


def test_a_ring_that_wraps_keeps_the_newest_events(spawn, tell):
    with (
        busy(spawn, tell, 10 * ROUNDS) as (_, go),
        BpfRecorder.open(Selection(), bits=8, wraps=True) as recorder,
    ):
        recorder.begin()
        go()
        ended_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        recorder.end()
        last = recorder.last()
        assert recorder.losses().count == 0
    events = max(last.events.values(), key=len)
    assert len(events) == 256
    assert ended_ns - int(events["ns"][-1]) < 1_000_000_000


@pytest.mark.parametrize(("cpus", "bits"), [(1, 18), (2, 18), (64, 14), (512, 12)])
def test_rings_share_their_memory_among_the_cpus(cpus, bits):
    assert ring_bits(cpus) == bits


@pytest.mark.parametrize(("cpus", "most_s"), [(1, 0.12), (8, 0.07), (16, 0.04), (64, 0.03)])
def test_smaller_rings_are_drained_more_often(cpus, most_s):
    assert 0.03 <= pause_s(1 << ring_bits(cpus)) <= most_s
