"""The steerer on this machine's real threads, cgroups and BPF file system; without an engine."""

import os
import threading
import time
from pathlib import Path

import pytest
from attrs import evolve

from temper_core.bpf import maps
from temper_core.errors import BpfError, MachineError
from temper_core.records.steering import LOOK_EVERY_S
from temper_core.records.thread_groups import Behaviour
from temper_core.steering import table as steering_table
from temper_core.steering.engine_layers import RunningEngine
from temper_core.steering.steerer import MOST_PERIODS, SOON_S
from temper_core.steering.thread_probe import ThreadProbe
from tests.core.steering.user_space.plans import at, named, rule, steered


class Clock:
    """Moments for ``turn``, each later than all that is rate-limited."""

    def __init__(self):
        self.now = 1000.0

    def later(self, seconds=100.0):
        self.now += seconds
        return self.now


@pytest.fixture
def clock():
    return Clock()


def hinted(steerer, tid):
    return steerer.truth()[tid].hinted


def test_before_there_is_a_plan_nothing_is_touched(steerer, clock):
    steerer.turn(clock.now)

    assert steerer.truth() is None
    assert steerer.state.mode == "hints"
    assert steerer.state.threads == 0


def test_threads_of_a_pod_and_of_none_get_their_hints(steerer, cgroups, workload, clock):
    pod, other = cgroups.make("pod"), workload()
    inside = workload()
    inside.move_to(pod)

    steerer.apply(steered(at(cgroups.path(pod), rule("high"), pod="shop/web")))
    steerer.turn(clock.now)

    truth = steerer.truth()
    assert (truth[inside.pid].hinted, truth[inside.pid].expected) == ("high", "high")
    assert (truth[other.pid].hinted, truth[other.pid].layer) == ("open", "")
    assert steerer.state.threads >= 2
    assert steerer.state.steered >= 2


def test_births_renames_and_moves_are_followed_between_two_turns(steerer, cgroups, workload, clock):
    pod, better = cgroups.make("pod"), cgroups.make("better")
    inside = workload()
    inside.move_to(pod)
    rules = (rule("fast", comm_prefix="vip"), rule("normal"))
    places = (
        at(cgroups.path(pod), *rules, pod="a"),
        at(cgroups.path(better), rule("critical"), pod="b"),
    )
    steerer.apply(steered(*places, fast=16))
    steerer.turn(clock.now)

    tid = inside.thread("plain")
    born = hinted(steerer, tid)
    inside.rename("plain", "vip-1")
    renamed = hinted(steerer, tid)
    inside.move_to(better)
    moved = hinted(steerer, tid)

    assert (born, renamed, moved) == ("normal", "fast", "critical")


def test_a_pod_whose_cgroup_comes_later_is_unresolved_until_then(steerer, cgroups, workload, clock):
    path = cgroups.path(cgroups.top / "late")
    steerer.apply(steered(at(path, rule("high"), pod="shop/late")))
    steerer.turn(clock.now)
    before = steerer.state.unresolved

    inside = workload()
    inside.move_to(cgroups.make("late"))
    steerer.turn(clock.later())

    assert before == (path,)
    assert steerer.state.unresolved == ()
    assert hinted(steerer, inside.pid) == "high"


def test_a_cgroup_made_is_an_event_that_costs_nothing_to_see(steerer, cgroups):
    before = steerer.cgroup_events

    cgroups.make("one")

    assert steerer.cgroup_events == before + 1


def test_titles_and_patterns_are_judged_in_user_space(steerer, cgroups, workload, clock):
    pod = cgroups.make("pod")
    writer, other = workload("walwriter"), workload("client")
    for each in (writer, other):
        each.move_to(pod)
    rules = (rule("fast", title_pattern="walwriter$", leader=True), rule("normal"))
    steerer.apply(steered(at(cgroups.path(pod), *rules, pod="db"), fast=16))

    due_in_s = steerer.turn(clock.now)

    truth = steerer.truth()
    assert truth[writer.pid].hinted == "fast"
    assert truth[writer.pid].is_decided
    assert (truth[other.pid].hinted, truth[other.pid].is_decided) == ("normal", False)
    assert due_in_s == SOON_S
    assert steerer.turn(clock.now + 0.1) == LOOK_EVERY_S


def test_a_thread_that_takes_a_name_only_user_space_knows_is_decided_at_the_next_turn(
    steerer, cgroups, workload, clock
):
    pod, inside = cgroups.make("pod"), workload()
    inside.move_to(pod)
    rules = (rule("fast", comm_pattern="^w[0-9]+$"), rule("normal"))
    steerer.apply(steered(at(cgroups.path(pod), *rules, pod="db"), fast=16))
    tid = inside.thread("idle")
    steerer.turn(clock.now)
    before = hinted(steerer, tid)

    inside.rename("idle", "w12")
    steerer.turn(clock.later())
    named_so = hinted(steerer, tid)
    inside.rename("idle", "other")
    steerer.turn(clock.later())

    assert (before, named_so, hinted(steerer, tid)) == ("normal", "fast", "normal")


def test_executables_and_parents_are_judged_in_user_space(steerer, cgroups, workload, clock):
    pod, inside = cgroups.make("pod"), workload()
    inside.move_to(pod)
    exe = Path(f"/proc/{inside.pid}/exe").resolve().name
    rules = (
        rule("high", exe="java"),
        rule("low", exe=exe, is_child=True),
        rule("fast", exe=exe, is_child=False, parent=Path("/proc/self/comm").read_text().strip()),
        rule("normal"),
    )
    steerer.apply(steered(at(cgroups.path(pod), *rules, pod="db"), fast=16))
    tid = inside.thread("any")

    steerer.turn(clock.now)

    truth = steerer.truth()
    assert (truth[inside.pid].hinted, truth[tid].hinted) == ("fast", "fast")
    assert truth[tid].is_decided


def test_a_thread_is_taken_at_the_look_after_it_has_reached_its_age(
    steerer, cgroups, workload, clock
):
    pod, inside = cgroups.make("pod"), workload()
    inside.move_to(pod)
    rules = (rule("low", older_than_s=1.5, comm_prefix="C2"), rule("normal"))
    steerer.apply(steered(at(cgroups.path(pod), *rules, pod="db")))
    tid, other = inside.thread("C2-1"), inside.thread("C1-1")
    began = time.monotonic()
    now = clock.now
    steerer.turn(now)
    young = hinted(steerer, tid)

    while hinted(steerer, tid) == "normal" and time.monotonic() < began + 30:
        time.sleep(0.1)
        steerer.turn(now + time.monotonic() - began)
    took_s = time.monotonic() - began

    assert (young, hinted(steerer, tid)) == ("normal", "low")
    assert hinted(steerer, other) == "normal"
    assert took_s > 1.0


def test_behaviour_decides_once_two_windows_agree(make_steerer, cgroups, workload, clock):
    steerer = make_steerer(ThreadProbe(clock=lambda: clock.now))
    pod, inside = cgroups.make("pod"), workload()
    inside.move_to(pod)
    wanted = rule("fast", behaviour=Behaviour(wakeups_per_s=(5, 10_000)))
    steerer.apply(steered(at(cgroups.path(pod), wanted, rule("normal"), pod="db"), fast=16))
    lively, idle = inside.thread("lively"), inside.pid

    layers = []
    for _ in range(4):
        steerer.turn(clock.later(2.0))
        layers.append(hinted(steerer, lively))
        time.sleep(0.3)

    assert layers == ["normal", "normal", "fast", "fast"]
    assert hinted(steerer, idle) == "normal"


def test_a_thread_that_rests_for_some_seconds_keeps_its_place_by_behaviour(
    make_steerer, cgroups, workload, clock
):
    steerer = make_steerer(ThreadProbe(clock=lambda: clock.now))
    pod, inside = cgroups.make("pod"), workload()
    inside.move_to(pod)
    wanted = rule("fast", behaviour=Behaviour(wakeups_per_s=(1, 10_000)))
    steerer.apply(steered(at(cgroups.path(pod), wanted, rule("normal"), pod="db"), fast=16))
    lively = inside.thread("lively")
    layers = []
    for _ in range(3):
        steerer.turn(clock.later(2.0))
        layers.append(hinted(steerer, lively))
        time.sleep(0.3)
    steerer.turn(clock.later(2.0))

    layers = []
    for _ in range(16):  # it wakes up as often, in far longer windows
        steerer.turn(clock.later(1_000.0))
        layers.append(hinted(steerer, lively))

    assert layers == ["fast"] * 14 + ["normal"] * 2


def test_before_its_behaviour_is_known_a_thread_is_where_the_kernel_side_puts_it(
    make_steerer, cgroups, workload, clock
):
    steerer = make_steerer(ThreadProbe(clock=lambda: clock.now))
    pod, inside = cgroups.make("pod"), workload()
    inside.move_to(pod)
    wanted = rule("fast", behaviour=Behaviour(wakeups_per_s=(5, 10_000)))
    unknown = evolve(rule("normal"), until_seen=True)
    rules = (wanted, unknown, rule("low"))
    steerer.apply(steered(at(cgroups.path(pod), *rules, pod="db"), fast=16))
    idle = inside.pid

    layers = []
    for _ in range(4):
        steerer.turn(clock.later(2.0))
        layers.append(hinted(steerer, idle))

    assert layers == ["normal", "normal", "low", "low"]


def test_decisions_are_taken_back_when_the_kernel_side_can_judge(steerer, cgroups, workload, clock):
    pod, inside = cgroups.make("pod"), workload("walwriter")
    inside.move_to(pod)
    rich = at(cgroups.path(pod), rule("fast", title_pattern="wal"), rule("normal"), pod="db")
    steerer.apply(steered(rich, fast=16))
    steerer.turn(clock.now)
    decided = hinted(steerer, inside.pid)

    steerer.apply(steered(at(cgroups.path(pod), rule("low"), pod="db")))
    steerer.turn(clock.later())

    assert (decided, hinted(steerer, inside.pid)) == ("fast", "low")
    assert not steerer.truth()[inside.pid].is_decided


def test_a_workload_known_by_its_process_is_steered_wherever_it_is(steerer, workload, clock):
    process = workload()
    comm = Path(f"/proc/{process.pid}/comm").read_text().strip()

    steerer.apply(steered(named(comm, rule("high"), pod="local/it")))
    steerer.turn(clock.now)

    assert hinted(steerer, process.pid) == "high"
    assert process.pid in {truth.tid for truth in steerer.truth().of_pod("local/it")}


def test_the_agents_and_the_engines_own_threads_belong_to_the_system_layer(
    steerer, workload, clock
):
    engine, ended = workload(), threading.Event()
    mine = threading.Thread(target=ended.wait)
    mine.start()
    steerer.apply(steered())

    steerer.turn(clock.now, RunningEngine(0, (), (engine.pid,)))
    truth = steerer.truth()
    ended.set()
    mine.join()

    assert truth[os.getpid()].hinted == "system"
    assert truth[mine.native_id].hinted == "system"
    assert truth[engine.pid].hinted == "system"


def test_threads_of_a_pod_are_listed_with_what_is_known_of_them(steerer, cgroups, workload, clock):
    pod, inside, outside = cgroups.make("pod/c1"), workload(), workload()
    inside.move_to(pod)
    steerer.apply(steered(at(cgroups.path(pod.parent), rule("high"), pod="shop/web")))
    steerer.turn(clock.now)

    listed = {truth.tid: truth for truth in steerer.truth().of_pod("shop/web")}

    assert inside.pid in listed
    assert outside.pid not in listed
    assert listed[inside.pid].cgroup_id == pod.stat().st_ino


def test_hints_that_somebody_else_changed_are_put_right_and_counted(
    steerer, cgroups, workload, clock
):
    pod, inside = cgroups.make("pod"), workload()
    inside.move_to(pod)
    plan = steered(at(cgroups.path(pod), rule("high"), pod="shop/web"))
    steerer.ready(plan)
    steerer.turn(clock.now)
    before = steerer.state.corrected

    poison(steerer.path, inside.pid, 3)
    steerer.turn(clock.later())

    assert hinted(steerer, inside.pid) == "high"
    assert steerer.state.corrected == before + 1


def test_a_walk_is_followed_sooner_if_it_found_something_to_do(
    make_steerer, cgroups, workload, clock
):
    period_s = 1e-6  # so that every walk takes long for its period
    steerer = make_steerer(period_s=period_s)
    pod, inside = cgroups.make("pod"), workload()
    inside.move_to(pod)
    steerer.ready(steered(at(cgroups.path(pod), rule("high"), pod="shop/web")))
    pauses = [steerer.turn(clock.later()) for _ in range(5)]

    poison(steerer.path, inside.pid, 3)
    after_correction = steerer.turn(clock.later())

    assert MOST_PERIODS * period_s in pauses
    assert after_correction == period_s


def test_the_pause_of_a_small_node_is_its_period(make_steerer, clock):
    steerer = make_steerer(period_s=3600.0)
    steerer.ready(steered())

    assert [steerer.turn(clock.later()) for _ in range(2)] == [3600.0] * 2


def test_a_hint_that_somebody_else_changed_is_seen_before_it_is_put_right(steerer, workload, clock):
    inside = workload()
    steerer.ready(steered())
    steerer.turn(clock.now)
    before = steerer.state.corrected

    poison(steerer.path, inside.pid, 3)
    truth = steerer.truth()[inside.pid]
    steerer.turn(clock.later())

    assert (truth.expected, truth.hinted) == ("open", "critical")
    assert steerer.state.corrected == before + 1


def poison(path, pid, hint):
    map_fd, pidfd = maps.open_pinned(path), os.pidfd_open(pid)
    try:
        maps.update(map_fd, pidfd.to_bytes(4, "little"), hint.to_bytes(8, "little") + bytes(24))
    finally:
        os.close(map_fd)
        os.close(pidfd)


def test_ready_pins_the_map_and_gives_every_thread_its_hint(steerer, cgroups, workload):
    pod, inside = cgroups.make("pod"), workload()
    inside.move_to(pod)

    steerer.ready(steered(at(cgroups.path(pod), rule("high"), pod="shop/web")))

    assert steerer.path.stat().st_mode & 0o777 == 0o600
    assert hinted(steerer, inside.pid) == "high"
    assert hinted(steerer, os.getpid()) == "system"


def test_a_pin_that_was_lost_is_made_again_and_counted(steerer, clock):
    steerer.ready(steered())
    steerer.path.unlink()

    steerer.turn(clock.later())

    assert steerer.path.exists()
    assert steerer.state.failures == 1
    assert steerer.state.reason == ""


def test_a_map_of_somebody_else_at_the_path_gives_way_to_ours(make_steerer, clock):
    ours, theirs = make_steerer(), make_steerer()
    theirs.ready(steered())
    ours.ready(steered())

    theirs.turn(clock.later())
    ours.ready(steered())

    map_fd = maps.open_pinned(ours.path)
    try:
        assert maps.info(map_fd).id == ours._kernel.map_id
    finally:
        os.close(map_fd)


def test_where_the_pin_cannot_be_made_the_reason_stands_until_it_can(steerer, clock):
    steerer.ready(steered())
    os.chown(steerer.path.parent, 65534, 65534)

    steerer.turn(clock.later())
    steerer.turn(clock.later(1))
    told = steerer.state
    with pytest.raises(MachineError, match="belongs to uid 65534"):
        steerer.ready(steered())
    os.chown(steerer.path.parent, 0, 0)
    steerer.turn(clock.later())

    assert "belongs to uid 65534" in told.reason
    assert told.failures == 1
    assert steerer.state.reason == ""


def test_a_pin_that_the_engine_opened_is_closed_when_the_engine_is_there(steerer, clock):
    steerer.ready(steered())
    steerer.turn(clock.now)
    steerer.path.chmod(0o666)

    steerer.turn(clock.later(1), RunningEngine(os.getpid(), ("open",)))

    assert steerer.path.stat().st_mode & 0o777 == 0o600


def test_an_engine_without_a_record_of_layers_is_told(steerer, clock):
    steerer.apply(steered())

    steerer.turn(clock.now, RunningEngine(os.getpid(), ("open",)))

    assert steerer.state.reason == "the engine's record of layers was not found"
    assert steerer.truth()[os.getpid()].layer == ""


def test_nothing_is_left_after_closing(make_steerer):
    steerer = make_steerer()
    steerer.ready(steered())
    directory = steerer.path.parent

    steerer.close()

    assert not directory.exists()


def test_a_failing_kernel_side_is_told_and_never_raised(steerer, clock, monkeypatch):
    def fail(**_given):
        raise BpfError("no walk")

    steerer.apply(steered())
    monkeypatch.setattr(steerer._kernel, "walk", fail)

    steerer.turn(clock.now)

    assert (steerer.state.reason, steerer.state.failures) == ("no walk", 1)
    assert steerer.truth() is None


def test_threads_of_cgroups_without_room_in_the_table_are_steered_by_the_walks(
    steerer, cgroups, workload, clock, monkeypatch
):
    monkeypatch.setattr(steering_table, "MOST_POLICIES", 1)
    outer, inner = cgroups.make("pod"), cgroups.make("pod/inner")
    first, second = workload(), workload()
    first.move_to(outer)
    second.move_to(inner)
    places = [
        at(cgroups.path(outer), rule("high"), pod="shop/web"),
        at(cgroups.path(inner), rule("low"), pod="shop/batch"),
    ]

    steerer.apply(steered(*places))
    steerer.turn(clock.now)

    assert [hinted(steerer, pid) for pid in (first.pid, second.pid)] == ["high", "low"]
    assert steerer.state.reason == (
        "cgroups that do not fit into the kernel's table: 1; the walks classify their threads"
    )


def test_in_a_storm_of_cgroups_the_table_is_written_again_only_after_a_rest(
    steerer, cgroups, clock
):
    plan = steered(*(at(cgroups.path(cgroups.top / n), rule("high"), pod=n) for n in "ab"))
    steerer.apply(plan)
    steerer.turn(clock.now)
    cgroups.make("a")
    steerer.turn(clock.later())
    cgroups.make("b")

    steerer.turn(clock.now)
    at_once = steerer.state.unresolved
    steerer.turn(clock.later())

    assert at_once == (cgroups.path(cgroups.top / "b"),)
    assert steerer.state.unresolved == ()


def test_a_new_plan_waits_for_no_rest(steerer, cgroups, clock):
    steerer.apply(steered(at(cgroups.path(cgroups.make("a")), rule("high"), pod="a")))
    steerer.turn(clock.now)

    steerer.apply(steered(at("nowhere", rule("high"), pod="b")))
    steerer.turn(clock.now)

    assert steerer.state.unresolved == ("nowhere",)
