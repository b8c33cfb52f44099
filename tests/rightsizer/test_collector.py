"""The collector: from snapshots and cgroup files to intervals of the history."""

import json
import os
import time
from base64 import b64decode
from pathlib import Path

import attrs
import pytest

from temper_core import Assignment, Container, LayerPlan, MachineError, Tier
from temper_core.records.snapshots import Observing, PodSample
from temper_core.testing import MadeContext, make_machine, make_pod, make_snapshot, make_thread
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey, WindowDemand
from temper_plugin_rightsizer.node import document
from temper_plugin_rightsizer.node.cgroup_counters import CgroupFiles
from temper_plugin_rightsizer.node.collector import INTERVAL_S, Collector
from temper_plugin_rightsizer.store.history import HOUR_S, History
from temper_plugin_rightsizer.store.keeper import Keeper
from temper_plugin_rightsizer.store.packing import unpack
from tests.rightsizer.at_once import AtOnce

NOW = 1_800_000_000
PATH = "kubepods/podu1/"
APP, SIDE = "a" * 64, "b" * 64
POD = make_pod(
    "web",
    "shop",
    cgroups=(PATH,),
    containers=(Container("app", runtime_id=APP), Container("side", runtime_id=SIDE)),
)
KEY = ContainerKey(POD.uid, "shop", "web", "app")


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "cgroup"
    for runtime_id in (APP, SIDE):
        (root / PATH / runtime_id).mkdir(parents=True)
    return root


def write(root, runtime_id=APP, **files):
    for name, content in files.items():
        (root / PATH / runtime_id / name.replace("_", ".", 1)).write_text(content)


@pytest.fixture
def collector(tmp_path, root):
    plan = LayerPlan(make_machine(), (), assignments=(Assignment(POD, Tier.NORMAL, "priority"),))
    lookup = MadeContext(plan=plan).lookup
    history = History(lambda: tmp_path, 4 << 20, clock=lambda: NOW)
    return Collector(Keeper(history, AtOnce()), lookup, CgroupFiles(root))


def snapshot_at(second, used=0.9, **changes):
    thread = make_thread("hot-1", namespace="shop", pod="web", container="app", cpu_used=used)
    pod = PodSample("shop", "web", POD.uid, Tier.NORMAL, 1, used)
    moment = {"at": float(NOW + second), "monotonic_s": 1000.0 + second, "window_s": 10.0}
    return make_snapshot(thread, pods=(pod,), **{**moment, **changes})


def test_a_finished_interval_is_kept(collector):
    for second in range(0, INTERVAL_S + 20, 10):
        collector.tell(snapshot_at(second))

    (kept,) = collector.keeper.history.read(0).keys() & {KEY}
    assert collector.keeper.history.read(0)[kept].cpu.seconds == INTERVAL_S
    assert collector.demands(3600, NOW + 320)[KEY].cpu.seconds == INTERVAL_S + 20


def test_the_last_interval_is_kept_at_the_end(collector):
    collector.tell(snapshot_at(0))

    collector.close()

    assert collector.keeper.history.read(0)[KEY].names == {"hot-#": 10}


def test_counters_are_those_of_the_container(collector, root):
    write(
        root,
        cpu_stat="usage_usec 5\nnr_periods 100\nnr_throttled 10\nthrottled_usec 2000000\n",
        memory_current="3000000\n",
        memory_stat="anon 1\ninactive_file 1000000\n",
        memory_events="low 0\nhigh 0\nmax 3\noom 0\noom_kill 1\n",
    )
    write(root, SIDE, memory_current="50\n")
    collector.tell(snapshot_at(0))
    write(
        root,
        cpu_stat="usage_usec 9\nnr_periods 700\nnr_throttled 70\nthrottled_usec 5000000\n",
        memory_events="low 0\nhigh 2\nmax 4\noom 1\noom_kill 2\n",
    )
    collector.tell(snapshot_at(60))

    counts = collector.demands(3600, NOW + 60)[KEY].counts

    assert (counts.periods, counts.throttled_periods, counts.throttled_s) == (600, 60, 3.0)
    assert (counts.high, counts.max, counts.oom, counts.oom_kill) == (2, 1, 1, 1)
    assert counts.peak_bytes == 2_000_000


def test_counters_of_a_restarted_container_begin_anew(collector, root):
    write(root, cpu_stat="nr_periods 700\nnr_throttled 70\nthrottled_usec 5000000\n")
    collector.tell(snapshot_at(0))
    write(root, cpu_stat="nr_periods 50\nnr_throttled 5\nthrottled_usec 100000\n")
    collector.tell(snapshot_at(60))

    counts = collector.demands(3600, NOW + 60)[KEY].counts

    assert (counts.periods, counts.throttled_periods) == (50, 5)


def test_files_of_a_hybrid_host_are_read(tmp_path):
    memory, cpu = tmp_path / "memory" / "x", tmp_path / "cpu" / "x"
    for directory in (memory, cpu):
        directory.mkdir(parents=True)
    (memory / "memory.usage_in_bytes").write_text("900\n")
    (memory / "memory.stat").write_text("inactive_file 7\ntotal_inactive_file 100\n")
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\noom_kill 4\n")
    (memory / "memory.failcnt").write_text("6\n")
    (cpu / "cpu.stat").write_text("nr_periods 9\nnr_throttled 3\nthrottled_time 8000000\n")

    counters = CgroupFiles(tmp_path).read("x")

    assert counters.working_set_bytes == 800
    assert (counters.oom_kill, counters.max) == (4, 6)
    assert (counters.periods, counters.throttled_periods, counters.throttled_us) == (9, 3, 8000)


def test_a_cgroup_that_is_gone_has_no_memory(tmp_path):
    assert CgroupFiles(tmp_path).read("x").working_set_bytes == -1


def test_a_window_without_threads_counts_for_nothing(collector):
    collector.tell(snapshot_at(0, observing=Observing(knows_threads=False)))

    assert (
        KEY not in collector.demands(3600, NOW) or not collector.demands(3600, NOW)[KEY].cpu.seconds
    )


def test_a_clock_that_jumps_back_loses_only_the_interval(collector):
    collector.tell(snapshot_at(0))
    collector.tell(snapshot_at(-86_400))
    collector.tell(snapshot_at(-86_390))

    assert collector.demands(3 * 86_400, NOW)[KEY].cpu.seconds == 30


DAY_S = 24 * HOUR_S


def told_for(collector, clock, begin_s, seconds):
    """Give the collector looks each minute by a wall clock that is *clock* off."""
    for second in range(0, seconds, 60):
        at_s = begin_s + second
        collector.tell(snapshot_at(at_s + clock, monotonic_s=1000.0 + at_s))


@pytest.fixture
def learned(collector):
    """A collector with an hour of each of the last 13 days, whose history has the same clock."""
    clock = [float(NOW)]
    collector.keeper.history = attrs.evolve(collector.keeper.history, clock=lambda: clock[0])
    told_for(collector, 0, -60, 60)
    known = collector.demands(HOUR_S, NOW)[KEY]
    for day in range(1, 14):
        collector.keeper.history.add(NOW - day * DAY_S, INTERVAL_S, {KEY: known})
    return collector, clock


def days_kept(collector):
    return len({at // DAY_S for _, at, _ in collector.keeper.history.intervals(0)} - {NOW // DAY_S})


@pytest.mark.parametrize("jump_s", [15 * DAY_S, -15 * DAY_S, -3000 * DAY_S])
def test_a_clock_that_is_wrong_for_less_than_an_hour_costs_no_history(learned, jump_s):
    collector, clock = learned

    for off, begin_s, seconds in ((0, 0, 600), (jump_s, 600, HOUR_S - 60), (0, 4200, HOUR_S - 60)):
        clock[0] = float(NOW + begin_s + off)
        told_for(collector, off, begin_s, seconds)

    assert days_kept(collector) >= 13


@pytest.mark.parametrize("jump_s", [15 * DAY_S, -15 * DAY_S])
def test_a_clock_that_stays_where_it_was_set_is_believed_after_an_hour(learned, jump_s):
    collector, clock = learned
    clock[0] = float(NOW + jump_s)

    told_for(collector, jump_s, 0, HOUR_S + 400)

    assert {at // DAY_S for _, at, _ in collector.keeper.history.intervals(0)} <= {
        (NOW + jump_s) // DAY_S,
        (NOW + jump_s) // DAY_S + 1,
    }


def test_an_agent_that_starts_forgets_nothing_in_its_first_hour(learned):
    collector, clock = learned
    clock[0] = float(NOW + 20 * DAY_S)
    again = Collector(Keeper(collector.keeper.history, AtOnce()), collector.lookup, collector.files)

    told_for(again, 20 * DAY_S, 0, HOUR_S - 60)

    assert days_kept(again) >= 13


def test_without_a_disk_the_agent_goes_on_and_tells_why(collector):
    def gone():
        raise MachineError("the state directory cannot be made: read-only file system")

    collector.keeper.history = attrs.evolve(collector.keeper.history, directory=gone)
    for second in range(0, INTERVAL_S + 20, 10):
        collector.tell(snapshot_at(second))

    assert "read-only" in collector.keeper.defect


def test_a_failure_that_is_over_is_no_defect_from_the_next_interval_on(collector, tmp_path):
    """Also without a pod, whose demand would be written."""

    def refuse():
        raise MachineError("a restoration is active: nothing is written on this host")

    collector.keeper.history.directory = refuse
    collector.tell(snapshot_at(0))
    before = collector.keeper.defect
    collector.keeper.history.directory = lambda: tmp_path
    collector.lookup = MadeContext(plan=LayerPlan(make_machine(), ())).lookup
    collector.tell(snapshot_at(INTERVAL_S))

    assert "a restoration is active" in before
    assert collector.keeper.defect == ""


def test_a_container_that_does_not_run_has_no_history(collector, root):
    """A pod may list hundreds of containers whose image is never there."""
    (root / PATH / SIDE).rmdir()

    collector.tell(snapshot_at(0))

    assert collector.demands(3600, NOW + 10).keys() == {KEY}


def test_a_report_has_a_bounded_number_of_rows_the_busiest_first(collector, monkeypatch):
    monkeypatch.setattr(document, "MOST_ROWS", 1)
    collector.tell(snapshot_at(0))

    answer = document.report(collector, 3600, NOW + 10)

    assert [row["container"] for row in answer["containers"]] == ["app"]
    assert answer["left_out"] == 1


def test_rows_with_their_histograms_have_one_bound(collector, monkeypatch):
    collector.tell(snapshot_at(0))
    whole = document.report(collector, 3600, NOW + 10, has_demand=True)
    sizes = [len(json.dumps(row)) for row in whole["containers"]]
    monkeypatch.setattr(document, "MOST_DEMAND_BYTES", sum(sizes))

    answer = document.report(collector, 3600, NOW + 10, has_demand=True)

    assert len(sizes) == 2
    assert len(json.dumps(answer["containers"])) <= sum(sizes)
    assert (len(answer["containers"]), answer["left_out"]) == (1, 1)


def test_a_report_knows_the_hours_to_come_of_the_day_before(collector, root):
    (root / PATH / SIDE).rmdir()
    busy = IntervalDemand()
    busy.add(WindowDemand(1.6), HOUR_S)
    collector.keeper.history.add((NOW // HOUR_S - 22) * HOUR_S, HOUR_S, {KEY: busy})
    for second in range(0, INTERVAL_S + 20, 10):
        collector.tell(snapshot_at(second, 0.2))

    (row,) = document.report(collector, 6 * HOUR_S, NOW + 320, has_demand=True)["containers"]

    assert row["recommended"]["cpu_request_millis"] == pytest.approx(2000, rel=0.06)
    assert any("a day ago" in reason for reason in row["reasons"])
    assert unpack(b64decode(row["day_before"])).cpu.seconds == HOUR_S


def test_after_hours_without_an_agent_the_older_history_counts_at_once(collector, root):
    (root / PATH / SIDE).rmdir()
    large = IntervalDemand()
    large.memory.add(900 << 20, HOUR_S)
    large.add(WindowDemand(1.6), HOUR_S)
    collector.keeper.history.add((NOW // HOUR_S - 22) * HOUR_S, HOUR_S, {KEY: large})
    collector.tell(snapshot_at(0, 0.2))

    demand = collector.demands(6 * HOUR_S, NOW + 10)[KEY]

    assert demand.cpu.seconds == 10
    assert demand.peak_bytes() == pytest.approx(900 << 20, rel=0.05)
    assert demand.day_before.cpu.seconds == HOUR_S


START_TICKS = 21
"""The field starttime of /proc/PID/stat, from 0."""


def run_since(root, proc, age_s, number=4711):
    """Let the first process of the container be *number*, *age_s* seconds old."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin = time.clock_gettime(time.CLOCK_BOOTTIME) - age_s
    fields[START_TICKS - 2] = str(round(begin * os.sysconf("SC_CLK_TCK")))
    (proc / str(number)).mkdir(parents=True, exist_ok=True)
    (proc / str(number) / "stat").write_text(f"{number} (a) b) {' '.join(fields)}")
    write(root, cgroup_procs=f"{number}\n{number + 1}\n")


def test_the_first_minutes_of_a_container_are_kept_apart(collector, root, tmp_path):
    proc = tmp_path / "proc"
    collector = attrs.evolve(collector, proc=proc)
    write(root, memory_current=str(900 << 20))
    run_since(root, proc, age_s=5)
    for second in range(0, 130, 10):
        collector.tell(snapshot_at(second, 2.5))
    run_since(root, proc, age_s=600)
    run_since(root, proc, age_s=600, number=4712)
    write(root, memory_current=str(300 << 20))
    for second in range(130, 700, 10):
        collector.tell(snapshot_at(second, 0.3))

    demand = collector.demands(3600, NOW + 700)[KEY]

    assert demand.startup.cpu.seconds == 130
    assert demand.startup.cpu.peak() == pytest.approx(2.5, rel=0.05)
    assert demand.startup.counts.peak_bytes == 900 << 20
    assert (demand.cpu.seconds, demand.counts.peak_bytes) == (570, 300 << 20)
    assert demand.cpu.peak() == pytest.approx(0.3, rel=0.05)
    row = next(
        row
        for row in document.report(collector, 3600, NOW + 700)["containers"]
        if row["container"] == "app"
    )
    assert row["recommended"]["cpu_request_millis"] in range(370, 420)
    assert row["recommended"]["memory_request_bytes"] in range(360 << 20, 379 << 20)
    assert any("of start-up used up to 2.5" in reason for reason in row["reasons"])
    assert row["used"]["startup_s"] == 130


def test_a_container_that_only_starts_is_judged_by_its_start(collector, root, tmp_path):
    collector = attrs.evolve(collector, proc=tmp_path / "proc")
    run_since(root, tmp_path / "proc", age_s=5)
    for second in range(0, 130, 10):
        collector.tell(snapshot_at(second, 0.9))

    rows = document.report(collector, 3600, NOW + 130)["containers"]

    (row,) = [row for row in rows if row["container"] == "app"]
    assert (row["verdict"], row["hot_threads"]) == ("exclusive", ("hot-#",))
    assert any("it counts" in reason for reason in row["reasons"])


def test_a_container_whose_age_is_not_known_has_no_start_up(collector, root):
    write(root, cgroup_procs="")
    for second in range(0, 130, 10):
        collector.tell(snapshot_at(second))

    assert collector.demands(3600, NOW + 130)[KEY].startup is None


def test_no_start_up_is_kept_apart_on_request(collector, root, tmp_path):
    collector = attrs.evolve(collector, proc=tmp_path / "proc", startup_s=0)
    run_since(root, tmp_path / "proc", age_s=5)
    for second in range(0, 130, 10):
        collector.tell(snapshot_at(second))

    assert collector.demands(3600, NOW + 130)[KEY].startup is None


def test_a_leak_is_named_and_nothing_is_raised(collector, root):
    limit = 400 << 20
    sized = attrs.evolve(
        POD,
        containers=(
            Container(
                "app", runtime_id=APP, memory_request_bytes=100 << 20, memory_limit_bytes=limit
            ),
            POD.containers[1],
        ),
    )
    plan = LayerPlan(make_machine(), (), assignments=(Assignment(sized, Tier.NORMAL, "priority"),))
    now = [float(NOW)]
    history = attrs.evolve(collector.keeper.history, clock=lambda: now[0])
    collector = Collector(
        Keeper(history, AtOnce()), MadeContext(plan=plan).lookup, CgroupFiles(root)
    )
    write(root, memory_events="max 2\noom_kill 0\n")
    for second in range(0, 7 * 3600, 60):
        write(root, memory_current=str((150 << 20) + (second << 20) // 300))
        now[0] = NOW + second
        collector.tell(snapshot_at(second, 0.1))

    rows = document.report(collector, 6 * 3600, NOW + 7 * 3600)["containers"]

    (row,) = [row for row in rows if row["container"] == "app"]
    assert row["leak"]["bytes_per_hour"] == pytest.approx(12 << 20, rel=0.1)
    left_s = (400 - 234) / 12 * 3600
    assert row["leak"]["until_limit_s"] == pytest.approx(left_s, rel=0.1)
    assert row["recommended"]["memory_request_bytes"] == 100 << 20
    assert row["recommended"]["memory_limit_bytes"] == limit
    assert any(reason.startswith("memory leak: ") for reason in row["reasons"])


def test_a_native_sidecar_and_the_kind_of_the_owner_are_told(collector, root):
    side = attrs.evolve(POD.containers[1], is_sidecar=True)
    pod = attrs.evolve(POD, owner="StatefulSet/web", containers=(POD.containers[0], side))
    plan = LayerPlan(make_machine(), (), assignments=(Assignment(pod, Tier.NORMAL, "priority"),))
    collector = Collector(
        Keeper(collector.keeper.history, AtOnce()), MadeContext(plan=plan).lookup, CgroupFiles(root)
    )
    collector.tell(snapshot_at(0))

    answer = document.report(collector, 3600, NOW + 10)

    rows = {row["container"]: row for row in answer["containers"]}
    assert {name: row["container_kind"] for name, row in rows.items()} == {
        "app": "app",
        "side": "sidecar",
    }
    assert any("a native sidecar" in reason for reason in rows["side"]["reasons"])
    assert any("restarts its pods one by one" in reason for reason in rows["app"]["reasons"])
    assert "not known on a node: HPA" in answer["notes"][0]


def test_what_was_realized_is_kept_with_the_container(collector):
    """Background work above its request, on CPUs that others requested, and a lowered request."""
    lowered = {"temper.codes/original-cpu-requests": '{"app": "2"}'}
    batch = make_pod(
        "batch",
        "shop",
        containers=(Container("app", cpu_request_millis=500),),
        cpu_request_millis=500,
        annotations=lowered,
    )
    machine = make_machine()
    web = make_pod("web", "shop", cpu_request_millis=1000 * len(machine.cpus) - 1000)
    assignments = (
        Assignment(batch, Tier.BACKGROUND, "priority"),
        Assignment(web, Tier.NORMAL, "priority"),
    )
    collector.lookup = MadeContext(plan=LayerPlan(machine, (), assignments=assignments)).lookup
    thread = make_thread("work", namespace="shop", pod="batch", container="app", cpu_used=2.0)
    pods = (
        PodSample("shop", "batch", batch.uid, Tier.BACKGROUND, 1, 2.0),
        PodSample("shop", "web", web.uid, Tier.NORMAL, 1, 0.5),
    )

    snapshot = make_snapshot(
        thread, pods=pods, machine=machine, at=float(NOW), monotonic_s=1.0, window_s=10.0
    )
    collector.tell(snapshot)

    counts = collector.demands(600, NOW)[ContainerKey(batch.uid, "shop", "batch", "app")].counts
    assert counts.reclaimed_core_s == pytest.approx(10.0), "1.5 above the request, 0.5 unrequested"
    assert counts.freed_core_s == pytest.approx(15.0)
