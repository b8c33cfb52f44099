"""The whole tick on the real machine."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attrs import evolve

from temper_core.engine.stats import EngineLayer, EngineStats
from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.document import observe_document
from temper_core.observe.observer import Observer
from temper_core.observe.process_text import NS_PER_TICK
from temper_core.observe.thread_rows import ThreadRow, ThreadRows, ThreadSums
from temper_core.records.engine_matchers import Matcher
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.pods import Container, Origin, Pod
from temper_core.records.snapshots import Mode, Status
from temper_core.records.steering import ThreadTruth
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings.models import ObserveSettings, Settings
from temper_core.settings.tiers import PlanSettings

MACHINE = MachineShape.uniform(2)
WATCHING = Status(Mode.OBSERVE_ONLY)
ENFORCING = Status(Mode.ENFORCING)
EVERYONE = ObserveSettings(detail_threads=8_000)
"""However busy the machine is with other things, the threads of a test have rows of their own."""
BUSY = "print('up', flush=True)\nwhile True: pass"


@pytest.fixture
def observer():
    settings = Settings(plan=PlanSettings(reserve_cores=2), observe=EVERYONE)
    observer = Observer(MACHINE, settings, node="here")
    yield observer
    observer.close()


def plan_for(pod, matcher):
    layers = (
        Layer("high", LayerKind.GROUPED, ((matcher,),), Tier.HIGH, members=(pod.key,)),
        Layer("open", LayerKind.OPEN, ((),)),
    )
    return LayerPlan(MACHINE, layers, (Assignment(pod, Tier.HIGH, "because"),))


def sample_of(pid, snapshot):
    [found] = [thread for thread in snapshot.threads if thread.tid == pid]
    return found


def test_the_first_tick_is_a_baseline_and_the_second_has_rates(observer, spawn, let_run):
    child = spawn(BUSY)

    first = observer.tick(plan=None, status=WATCHING)
    let_run(child.pid)
    second = observer.tick(plan=None, status=WATCHING)

    assert (first.window_s, first.threads) == (0.0, ())
    assert second.window_s == pytest.approx(second.monotonic_s - first.monotonic_s)
    thread = sample_of(child.pid, second)
    assert 0 < thread.cpu_used <= 1
    assert 0 <= thread.run_delay_ratio <= 1
    assert (thread.layer, thread.expected_layer, thread.pod) == ("", "", "")


def test_a_snapshot_says_where_and_when_it_was_taken(observer, names_in):
    began = time.time()

    snapshot = observer.tick(plan=None, status=WATCHING)

    assert began <= snapshot.at <= time.time()
    assert (snapshot.node, snapshot.machine, snapshot.status) == ("here", MACHINE, WATCHING)
    assert (snapshot.reserve_cores, snapshot.overhead.period_s) == (2, 5.0)
    assert snapshot.overhead.threads_seen >= len(names_in("/proc/self/task"))


def test_a_threads_age_is_the_time_since_its_start(observer, spawn, let_run):
    child = spawn(BUSY)
    observer.tick(plan=None, status=WATCHING)
    let_run(child.pid)

    thread = sample_of(child.pid, observer.tick(plan=None, status=WATCHING))

    started = int(Path(f"/proc/{child.pid}/stat").read_text().split()[21]) * NS_PER_TICK / 1e9
    assert thread.start_ticks * NS_PER_TICK / 1e9 == started
    assert 0 < thread.age_s <= time.clock_gettime(time.CLOCK_BOOTTIME) - started


def test_a_thread_in_a_pods_cgroup_has_pod_container_tier_and_layer(spawn, cgroup, let_run):
    name, folder = cgroup
    containers = (Container("main", runtime_id=name),)
    pod = Pod("u1", "shop", "db", cgroups=(f"{name}/",), containers=containers)
    plan = plan_for(pod, Matcher("CgroupPrefix", f"{name}/"))
    child = spawn(BUSY)
    (folder / "cgroup.procs").write_text(str(child.pid))
    roots = CgroupRoots(str(folder.parent))
    observer = Observer(MACHINE, Settings(observe=EVERYONE), node="here", cgroup_roots=roots)
    observer.tick(plan=plan, status=ENFORCING)
    let_run(child.pid)

    snapshot = observer.tick(plan=plan, status=ENFORCING)

    thread = sample_of(child.pid, snapshot)
    assert (thread.namespace, thread.pod, thread.container) == ("shop", "db", "main")
    assert (thread.tier, thread.layer, thread.expected_layer) == (Tier.HIGH, "high", "high")
    [sample] = snapshot.pods
    assert (sample.pod, sample.tier, sample.threads) == ("db", Tier.HIGH, 1)
    assert 0 < sample.cpu_used <= 1.2
    observer.close()
    child.kill()
    child.wait()


def test_what_came_and_went_between_two_looks_is_still_charged_to_its_pod(spawn, cgroup):
    name, folder = cgroup
    plan = plan_for(Pod("u1", "shop", "db", cgroups=(f"{name}/",)), Matcher("CommPrefix", "none"))
    observer = Observer(
        MACHINE, Settings(), node="here", cgroup_roots=CgroupRoots(str(folder.parent))
    )
    observer.tick(plan=plan, status=WATCHING)
    child = spawn("import sys; print('up', flush=True); sys.stdin.readline(); sum(range(3000000))")
    (folder / "cgroup.procs").write_text(str(child.pid))
    child.communicate("go\n")

    snapshot = observer.tick(plan=plan, status=WATCHING)

    assert snapshot.pods[0].cpu_used > 0
    assert snapshot.pods[0].threads == 0
    observer.close()


def test_a_workload_known_by_its_process_is_summed_over_its_threads(observer, spawn, let_run):
    child = spawn("open('/proc/self/comm', 'w').write('temper-busy')\n" + BUSY)
    containers = (Container("run", processes=("temper-busy",)),)
    pod = Pod("w1", "", "batch", containers=containers, origin=Origin.WORKLOAD)
    plan = plan_for(pod, Matcher("PcommPrefix", "temper-busy"))
    observer.tick(plan=plan, status=WATCHING)
    let_run(child.pid)

    snapshot = observer.tick(plan=plan, status=WATCHING)

    thread = sample_of(child.pid, snapshot)
    assert (thread.pod, thread.expected_layer, thread.layer) == ("batch", "high", "")
    assert snapshot.pods[0].threads == 1
    # The kernel books late, and a thread is told of one CPU at most.
    assert snapshot.pods[0].cpu_used == pytest.approx(thread.cpu_used, rel=0.25)


def test_a_new_plan_is_used_at_once(observer, spawn, let_run):
    child = spawn(BUSY)
    pod = Pod("u1", "shop", "db")
    observer.tick(plan=None, status=ENFORCING)
    wanted = []

    for prefix in ("py", "nothing"):
        let_run(child.pid)
        plan = plan_for(pod, Matcher("CommPrefix", prefix))
        wanted.append(sample_of(child.pid, observer.tick(plan=plan, status=ENFORCING)).layer)

    assert wanted == ["high", "open"]


def test_the_engines_layers_and_the_plugins_are_handed_on(observer):
    plan = plan_for(Pod("u1", "shop", "db"), Matcher("CommPrefix", "x"))
    stats = EngineStats({"high": EngineLayer("high", util=50.0, cpus=(1,))})

    snapshot = observer.tick(plan=plan, status=ENFORCING, stats=stats, engine_pid=os.getpid())

    assert [(layer.name, layer.util) for layer in snapshot.layers] == [("high", 0.5)]
    assert "layers: the engine does not report 'open'" in snapshot.defects
    assert snapshot.overhead.engine_memory_bytes > 0
    assert snapshot.plan is plan


def test_a_node_without_proc_is_a_reading_full_of_defects(tmp_path):
    from_proc = Settings(observe=ObserveSettings(tier="proc"))
    observer = Observer(MACHINE, from_proc, node="here", proc_root=tmp_path / "gone")

    for _ in range(2):
        snapshot = observer.tick(plan=None, status=WATCHING)

    assert (snapshot.threads, dict(snapshot.pressure)) == ((), {})
    assert snapshot.defects[0] == f"threads: {tmp_path}/gone: No such file or directory"
    assert len(snapshot.defects) == 4


def test_looking_over_budget_stretches_the_period_and_is_told():
    thrifty = ObserveSettings(period_s=0.2, budget_cpu_ratio=0.000_001)
    observer = Observer(MACHINE, Settings(observe=thrifty), node="here")

    snapshots = [observer.tick(plan=None, status=WATCHING) for _ in range(8)]

    assert observer.period_s == 0.8
    assert snapshots[-1].overhead.period_s > 0.2
    assert snapshots[-1].overhead.tick_s > 0
    assert any(defect.startswith("observe: observation costs") for defect in snapshots[-1].defects)
    observer.close()


def test_what_looking_costs_is_charged_to_observe(observer):
    for _ in range(3):
        snapshot = observer.tick(plan=None, status=WATCHING)

    parts = snapshot.overhead.cpu_ratio
    assert parts["observe_user"] + parts["observe_kernel"] > 0
    assert {"other_user", "other_kernel"} <= set(parts)


def test_an_observer_that_is_closed_has_left_nothing_open(spawn, names_in):
    spawn(BUSY)
    before = len(names_in("/proc/self/fd"))
    observer = Observer(MACHINE, Settings(), node="here")

    for _ in range(5):
        observer.tick(plan=None, status=WATCHING)
    during = len(names_in("/proc/self/fd"))
    observer.close()

    assert during > before
    assert len(names_in("/proc/self/fd")) == before


def test_a_changed_machine_is_in_the_next_snapshot(observer):
    observer.machine = evolve(MACHINE, offline=(1,))

    assert observer.tick(plan=None, status=WATCHING).machine.offline == (1,)


def test_the_bench_prints_what_a_tick_costs():
    bench = Path(__file__).parents[3] / "bench" / "observe_tick.py"
    arguments = ["--threads", "20", "--ticks", "2", "--wait", "0.01", "--json"]

    done = subprocess.run(
        [sys.executable, bench, *arguments], capture_output=True, text=True, check=True
    )

    assert '"threads_made": 20' in done.stdout
    assert '"core_share_percent"' in done.stdout


def truth_of(child, **known):
    start_ns = start_ticks_of(child.pid) * NS_PER_TICK
    told = ThreadTruth(child.pid, child.pid, start_ns, "python", 1, 0, **known)
    return {child.pid: told}


def start_ticks_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_the_engines_own_record_of_a_layer_counts_before_what_is_inferred(observer, spawn, let_run):
    child = spawn(BUSY)
    pod = Pod("u", "shop", "web", containers=(Container("main", processes=("python",)),))
    plan = plan_for(evolve(pod, origin=Origin.WORKLOAD), Matcher("PcommPrefix", "python"))
    observer.tick(plan=plan, status=ENFORCING)
    let_run(child.pid)

    seen = observer.tick(
        plan=plan, status=ENFORCING, truth=truth_of(child, hinted="high", layer="open")
    )

    thread = sample_of(child.pid, seen)
    assert (thread.layer, thread.layer_is_known, thread.hinted_layer) == ("open", True, "high")
    assert thread.expected_layer == "high"


def test_what_user_space_decided_is_expected_as_decided(observer, spawn, let_run):
    child = spawn(BUSY)
    observer.tick(plan=None, status=ENFORCING)
    let_run(child.pid)

    seen = observer.tick(
        plan=None, status=ENFORCING, truth=truth_of(child, expected="system", is_decided=True)
    )

    thread = sample_of(child.pid, seen)
    assert (thread.expected_layer, thread.layer) == ("system", "system")
    assert not thread.layer_is_known


def test_what_is_known_of_an_earlier_thread_of_that_tid_is_not_said_of_this_one(
    observer, spawn, let_run
):
    child = spawn(BUSY)
    [told] = truth_of(child, hinted="high", layer="open").values()
    observer.tick(plan=None, status=ENFORCING)
    let_run(child.pid)

    seen = observer.tick(
        plan=None, status=ENFORCING, truth={child.pid: evolve(told, start_ns=NS_PER_TICK)}
    )

    thread = sample_of(child.pid, seen)
    assert (thread.hinted_layer, thread.layer, thread.layer_is_known) == ("", "", False)


def test_after_a_calm_the_next_look_comes_sooner_but_not_at_once(spawn, wait_until):
    if not Path("/proc/pressure/cpu").exists():
        pytest.skip("this kernel has no PSI")
    rung = []
    observer = Observer(MACHINE, Settings(), node="here", alarm=lambda: rung.append(True))
    looked_at = observer.tick(plan=None, status=WATCHING).monotonic_s
    due = looked_at + 5.0

    for _ in range(2):
        spawn("import os; os.sched_setaffinity(0, {0})\n" + BUSY)
    wait_until(lambda: rung, "no alarm")
    hurried = [observer.hurried(due) for _ in range(2)]

    assert hurried == [pytest.approx(looked_at + 2.5), due]
    assert observer.tick(plan=None, status=WATCHING).pressure_events["cpu"] >= 1
    observer.close()


def test_the_tier_and_how_far_it_looks_are_told(observer):
    from_proc = Settings(observe=ObserveSettings(tier="proc", period_s=2.0))
    slow = Observer(MACHINE, from_proc, node="here")

    told = slow.tick(plan=None, status=WATCHING).observing

    slow.close()
    assert (told.tier, told.period_s, told.asked_period_s, told.stretched) == ("proc", 2, 2, "")
    assert (told.least_s, told.unlisted) == (0, 0)
    assert observer.tick(plan=None, status=WATCHING).observing.tier in ("bpf", "bpf-iter", "proc")


class Rows:
    """A reader of threads that has been told what there is."""

    tier = "bpf"

    def __init__(self, *looks):
        self.looks = list(looks)

    def snapshot(self, since):
        assert since in (0, 1)
        return self.looks.pop(0)

    def refresh_cgroups(self):
        pass

    def close(self):
        pass


class Failing(Rows):
    """Has no answer at some looks."""

    def snapshot(self, since):
        look = super().snapshot(since)
        if look is None:
            raise OSError(errno.ENOMEM, "no memory", "tier bpf")
        return look


def test_threads_that_could_not_be_read_once_are_told_to_be_unknown_in_the_next_window_too():
    looks = (ThreadRows(1), None, ThreadRows(1), ThreadRows(1))
    observer = Observer(MACHINE, Settings(), node="here", threads=Failing(*looks))

    seen = [observer.tick(plan=None, status=WATCHING) for _ in looks]

    observer.close()
    of_threads = [[each for each in one.defects if each.startswith("threads:")] for one in seen]
    assert [len(each) for each in of_threads] == [0, 1, 1, 0]
    assert "no memory" in of_threads[1][0]
    assert "after a failed look" in of_threads[2][0]
    assert [one.observing.knows_threads for one in seen] == [False, False, False, True]


def test_what_ran_while_threads_were_not_known_is_not_taken_for_short_lived(tmp_path):
    path = "kubepods/pod1/"
    folder = tmp_path / path
    folder.mkdir(parents=True)
    looks = Failing(ThreadRows(1), None, ThreadRows(1), ThreadRows(1))
    roots = CgroupRoots(str(tmp_path))
    observer = Observer(MACHINE, Settings(), node="here", threads=looks, cgroup_roots=roots)
    plan = plan_for(Pod("u1", "shop", "db", cgroups=(path,)), Matcher("CgroupPrefix", path))
    pods = []

    for used_us in (0, 1_000, 2_000, 3_000):
        (folder / "cpu.stat").write_text(f"usage_usec {used_us}\n")
        seen = observer.tick(plan=plan, status=WATCHING)
        pods.append([round(share * seen.window_s, 6) for share in shares_of(seen)])

    observer.close()
    assert pods == [[0.0, 0.0], [0.001, 0.0], [0.001, 0.0], [0.001, 0.001]]


def test_what_ran_where_threads_are_hidden_is_not_taken_for_short_lived(tmp_path):
    path = "kubepods/pod1/"
    folder = tmp_path / path
    folder.mkdir(parents=True)
    looks = Rows(ThreadRows(1), ThreadRows(1, sees_all=False), ThreadRows(1))
    roots = CgroupRoots(str(tmp_path))
    observer = Observer(MACHINE, Settings(), node="here", threads=looks, cgroup_roots=roots)
    plan = plan_for(Pod("u1", "shop", "db", cgroups=(path,)), Matcher("CgroupPrefix", path))
    pods = []

    for used_us in (0, 1_000, 2_000):
        (folder / "cpu.stat").write_text(f"usage_usec {used_us}\n")
        seen = observer.tick(plan=plan, status=WATCHING)
        pods.append([round(share * seen.window_s, 6) for share in shares_of(seen)])

    observer.close()
    assert pods == [[0.0, 0.0], [0.001, 0.0], [0.001, 0.001]]
    assert seen.observing.knows_threads


def shares_of(snapshot):
    [pod] = snapshot.pods
    return pod.cpu_used, pod.short_lived_cpu_used


def a_row(cgroup, **changes):
    return ThreadRow(7, 7, "t", "t", 1, 0, 10**7, 10**6, False, 0, cgroup)._replace(**changes)


def test_what_is_only_known_as_a_sum_counts_for_its_pod(tmp_path):
    path = "kubepods/pod1/"
    folder = tmp_path / path
    folder.mkdir(parents=True)
    rest = {f"{path}c/": ThreadSums(3, 2 * 10**7, 10**7, 6, 4, 2, 1)}
    rows = (a_row(f"{path}c/", runs=4), a_row("else/", runs=100))
    looks = (
        ThreadRows(1),
        ThreadRows(2, rows, 9, {f"{path}c/": 8, "else/": 1}, rest=rest, least_ns=10**6),
    )
    observer = Observer(
        MACHINE,
        Settings(),
        node="here",
        threads=Rows(*looks),
        cgroup_roots=CgroupRoots(str(tmp_path)),
    )
    plan = plan_for(Pod("u1", "shop", "db", cgroups=(path,)), Matcher("CgroupPrefix", path))
    (folder / "cpu.stat").write_text("usage_usec 1000\n")
    observer.tick(plan=plan, status=WATCHING)
    (folder / "cpu.stat").write_text("usage_usec 41000\n")

    seen = observer.tick(plan=plan, status=WATCHING)

    observer.close()
    [pod] = seen.pods
    window_s = seen.window_s
    assert (pod.threads, pod.switches) == (8, 10)
    assert pod.run_delay * window_s == pytest.approx(0.011)
    # 40 ms by the cgroup, of which 10 ms in the row and 20 ms in the sum.
    assert pod.short_lived_cpu_used * window_s == pytest.approx(0.010)
    assert (seen.observing.least_s, seen.observing.unlisted) == (0.001, 3)


def test_what_a_tier_or_a_cgroup_does_not_count_is_not_told_as_none_of_a_pod(tmp_path):
    path = "kubepods/pod1/"
    (tmp_path / path).mkdir(parents=True)
    looks = (ThreadRows(1), ThreadRows(2, (a_row(path, runs=-1), a_row(path, tid=8, runs=-1))))
    observer = Observer(
        MACHINE,
        Settings(),
        node="here",
        threads=Rows(*looks),
        cgroup_roots=CgroupRoots(str(tmp_path)),
    )
    plan = plan_for(Pod("u1", "shop", "db", cgroups=(path,)), Matcher("CgroupPrefix", path))
    observer.tick(plan=plan, status=WATCHING)

    seen = observer.tick(plan=plan, status=WATCHING)

    observer.close()
    [pod] = observe_document(seen, 1)["pods"]
    assert (pod["threads"], pod["switches"], pod["memory_bytes"]) == (2, None, None)


def test_what_the_kernel_side_tells_of_a_thread_is_in_its_sample(tmp_path):
    told = {"runs": 9, "voluntary": 7, "involuntary": 2, "migrations": 1, "nice": -5}
    row = a_row("/", policy=1, rt_priority=10, waiting_ns=5 * 10**8, **told)
    looks = Rows(ThreadRows(1), ThreadRows(2, (row, row._replace(tid=8, policy=-1))))
    roots = CgroupRoots(str(tmp_path))
    observer = Observer(MACHINE, Settings(), node="here", threads=looks, cgroup_roots=roots)
    observer.tick(plan=None, status=WATCHING)

    known, unknown = observer.tick(plan=None, status=WATCHING).threads

    observer.close()
    assert {name: getattr(known, name) for name in told} == told
    assert (known.policy, known.rt_priority, known.waiting_s) == ("fifo", 10, 0.5)
    assert (known.affinity, unknown.policy) == ((), "")


def test_a_bound_thread_has_its_cpus(spawn, let_run):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU only: nobody can be bound to fewer")
    observer = Observer(MachineShape.uniform(os.cpu_count()), Settings(observe=EVERYONE), node="x")
    child = spawn("import os; os.sched_setaffinity(0, {1})\n" + BUSY)
    observer.tick(plan=None, status=WATCHING)
    let_run(child.pid)

    seen = observer.tick(plan=None, status=WATCHING)

    observer.close()
    if seen.observing.tier == "proc":
        pytest.skip("the proc tier does not read affinities")
    assert sample_of(child.pid, seen).affinity == (1,)
    assert sample_of(child.pid, seen).policy == "other"


def test_a_cgroup_throttled_for_real_says_how_much_of_its_pressure_that_explains(
    spawn, throttled, wait_until
):
    path, roots, join = throttled
    join(spawn("import os; os.sched_setaffinity(0, {0})\n" + BUSY).pid)
    machine = MachineShape.uniform(os.cpu_count())
    observer = Observer(machine, Settings(), node="here", cgroup_roots=roots)
    plan = plan_for(Pod("u1", "shop", "db", cgroups=(path,)), Matcher("CgroupPrefix", path))

    def counted():
        stat = Path(roots.cpu, path, "cpu.stat").read_text().split()
        pressure = Path(roots.unified, path, "cpu.pressure").read_text()
        return int(stat[3]), int(pressure.split("total=")[1].split()[0]) / 1e6

    before = counted()
    observer.tick(plan=plan, status=WATCHING)
    wait_until(lambda: counted()[0] >= before[0] + 10, "the quota does not bite")
    seen = observer.tick(plan=plan, status=WATCHING)
    after = counted()

    observer.close()
    [pod] = seen.pods
    assert (pod.quota_cores, pod.weight, pod.cpuset) == (0.1, None, ())
    assert 0 < pod.throttled_ratio <= 1
    assert pod.throttled_s > 0
    # One thread wants one CPU: all of its throttled time is taken off its pressure.
    left_s = pod.unthrottled_pressure * seen.window_s
    assert 0 <= left_s <= max(0.0, after[1] - before[1] - pod.throttled_s) + 0.001
