"""Real threads, seen by the real observer, judged by the real linter: this machine's kernel."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

import temper_plugin_linter
from temper_core import (
    Assignment,
    Container,
    Invariant,
    Layer,
    LayerKind,
    LayerPlan,
    MachineShape,
    Mode,
    Origin,
    Pod,
    Section,
    Status,
    Tier,
)
from temper_core.engine.stats import EngineLayer, EngineStats
from temper_core.lint.windows import Linter
from temper_core.observe.observer import Observer
from temper_core.plugin_host import PluginHost
from temper_core.records.engine_matchers import Matcher
from temper_core.settings.models import LintSettings, Settings
from temper_plugin_tracer.document import window_document
from temper_plugin_tracer.watch import WakeWatch

CPUS = sorted(os.sched_getaffinity(0))
HERE, ELSEWHERE = CPUS[-1], CPUS[0]
MACHINE = MachineShape.uniform(os.cpu_count() or 1)
RT_RUNTIME = Path("/proc/sys/kernel/sched_rt_runtime_us")
WINDOWS, WATCHED_WINDOWS, WINDOW_S = 4, 2, 0.35
# Who spins ends by itself, whatever becomes of the test; a real-time thread soon.
LONGEST_S = {"other": 30.0, "fifo": 1.9}
# However many others share this machine's CPUs, ours still use and wait that much.
BUSY_HOST = {"idle_cpu": 0.01, "antagonist_ratio": 0.02}
RESTING = Status(Mode.OBSERVE_ONLY)
ENFORCING = Status(Mode.ENFORCING)

SPIN = """
import os, sys, time
name, cpus, policy, seconds = sys.argv[1:]
open("/proc/self/comm", "w").write(name)
os.sched_setaffinity(0, map(int, cpus.split(",")))
if policy == "fifo":
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print("up", flush=True)
until = time.monotonic() + float(seconds)
while time.monotonic() < until:
    pass
"""

pytestmark = pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")


def layer(name, kind, *, processes=(), **flags):
    """Return a layer that takes processes by name; without any it takes everybody."""
    blocks = tuple((Matcher("PcommPrefix", process),) for process in processes) or ((),)
    return Layer(name, kind, blocks, **flags)


def pod(name, tier, process):
    workload = Pod(
        f"uid-{name}",
        "shop",
        name,
        containers=(Container("main", processes=(process,)),),
        origin=Origin.WORKLOAD,
        tier=tier,
    )
    return Assignment(workload, tier, "test")


PLAN = LayerPlan(
    MACHINE,
    (
        layer(
            "critical",
            LayerKind.CONFINED,
            processes=("lint-db",),
            tier=Tier.CRITICAL,
            protected=True,
            members=("shop/db",),
        ),
        layer("open", LayerKind.OPEN, members=("shop/batch",)),
    ),
    (pod("db", Tier.CRITICAL, "lint-db"), pod("batch", Tier.LOW, "lint-batch")),
)


@contextmanager
def spinning(*threads):
    """Let processes spin: each a name, the CPUs it is bound to, and perhaps a policy."""
    children = []
    try:
        for name, cpus, policy in ((*thread, "other")[:3] for thread in threads):
            bound = ",".join(map(str, cpus))
            command = [sys.executable, "-S", "-c", SPIN, name, bound, policy]
            child = subprocess.Popen([*command, str(LONGEST_S[policy])], stdout=subprocess.PIPE)
            children.append(child)
            assert child.stdout.readline() == b"up\n"
        yield
    finally:
        for child in children:
            child.kill()
            child.communicate()


@pytest.fixture(autouse=True, scope="module")
def keep_away():
    """Look on from the other CPUs: nobody who stands behind a real-time thread sees it."""
    os.sched_setaffinity(0, set(CPUS) - {HERE})
    yield
    os.sched_setaffinity(0, CPUS)


def refuse_if_fifo_is_dangerous():
    """Skip where a real-time thread may not be made, or nothing keeps a CPU from it."""
    runtime = RT_RUNTIME.read_text() if RT_RUNTIME.exists() else "-1"
    if int(runtime) < 0:
        pytest.skip("real-time throttling is off: a FIFO thread would have its CPU for good")
    own = os.sched_getscheduler(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        pytest.skip("this process may not make real-time threads")
    os.sched_setscheduler(0, own, os.sched_param(0))


def linter_of(**limits):
    """Return the agent's own linter, with these thresholds."""
    host = PluginHost(Settings(plugins={"linter": limits}))
    host.add(temper_plugin_linter, "linter")
    invariants = host.gather("temper_invariants", Invariant)
    rules = LintSettings(windows=WINDOWS, fire_after=2)
    return Linter([(c.plugin, c.record) for c in invariants], rules, host.call)


def judge_for_a_while(linter, *threads, status=ENFORCING, watch=None):
    """Judge some short windows with *threads* spinning, critical's fence being the CPU HERE.

    Returns the last window, and what stands of our threads.
    """
    observer = Observer(MACHINE, Settings(), node="here")
    engine = EngineStats(
        {"critical": EngineLayer("critical", cpus=(HERE,)), "open": EngineLayer("open")}
    )
    told = {"plan": PLAN if status is ENFORCING else None, "status": status, "stats": engine}
    sections = {}
    try:
        standing = linter.judge(observer.tick(**told))
        with spinning(*threads):
            for number in range(WINDOWS):
                time.sleep(WINDOW_S)
                snapshot = observer.tick(**told)
                if watch is not None and number < WATCHED_WINDOWS:
                    sections = {"tracer": Section(1, window_document(watch(snapshot)))}
                snapshot = attrs.evolve(snapshot, sections=sections)
                standing = linter.judge(snapshot)
    finally:
        observer.close()
    return snapshot, [each for each in standing if each.subject.split()[-1].startswith("lint-")]


def comm_in(thread_name):
    """Return the name of a thread from what it is called in a message."""
    return thread_name.rpartition("[")[0].rpartition(" ")[2]


def subjects(violations, invariant):
    return {each.subject for each in violations if each.invariant == invariant}


@pytest.fixture(scope="module")
def beside_a_real_time_thread():
    """A FIFO thread on one CPU, and an ordinary one that is bound to the same."""
    refuse_if_fifo_is_dangerous()
    threads = ("lint-victim", [HERE]), ("lint-hog", [HERE], "fifo")
    return judge_for_a_while(linter_of(starved_s=0.2), *threads, status=RESTING)


@pytest.fixture(scope="module")
def beside_each_other():
    """A protected thread in its fence, another pod's bound into it, and one free to leave."""
    threads = ("lint-db", [HERE]), ("lint-batch", [HERE]), ("lint-free", CPUS)
    return judge_for_a_while(linter_of(**BUSY_HOST), *threads)


def test_a_real_fifo_thread_that_spins_is_a_hog(beside_a_real_time_thread):
    _, standing = beside_a_real_time_thread

    [hog] = [each for each in standing if each.invariant == "rt_hog"]

    assert hog.subject == "lint-hog"
    assert f"fifo thread of priority 1 uses {hog.evidence['cpu_used']:.2f} of CPU {HERE}" in (
        hog.message
    )


def test_who_is_bound_behind_a_real_fifo_thread_starves(beside_a_real_time_thread):
    snapshot, standing = beside_a_real_time_thread
    if snapshot.observing.tier == "proc":
        pytest.skip(f"/proc does not tell who waits: {snapshot.observing.reason}")

    assert "lint-victim" in subjects(standing, "starvation")
    assert "lint-hog" not in subjects(standing, "starvation")


def test_ordinary_threads_that_share_a_cpu_are_no_hogs_and_do_not_starve(beside_each_other):
    _, standing = beside_each_other

    assert subjects(standing, "rt_hog") | subjects(standing, "starvation") == set()


def test_a_real_thread_bound_into_anothers_fence_is_stale_and_who_can_leave_is_not(
    beside_each_other,
):
    _, standing = beside_each_other

    assert subjects(standing, "stale_affinity") == {"shop/batch lint-batch"}


def test_who_runs_while_a_real_protected_thread_waits_is_its_antagonist(beside_each_other):
    snapshot, standing = beside_each_other

    [found] = [each for each in standing if each.invariant == "antagonist"]

    # Whoever else runs on this machine may be a worse one than ours.
    ran_there = {thread.comm for thread in snapshot.threads if thread.cpu == HERE}
    assert found.subject == "shop/db lint-db"
    assert comm_in(found.evidence["runner"]) in ran_there - {"lint-db"}
    assert found.evidence["inferred"] == 1
    assert found.evidence["waited_ratio"] > 0.1


def test_a_real_protected_thread_bound_beside_its_fence_is_stale():
    _, standing = judge_for_a_while(linter_of(**BUSY_HOST), ("lint-db", [ELSEWHERE]))

    assert subjects(standing, "stale_affinity") == {"shop/db lint-db"}


def watched(snapshot):
    """Watch wake-ups and waits in one window; skip where the kernel does not let us."""
    watch = WakeWatch(is_wanted=True)
    try:
        watch.turn(time.monotonic(), snapshot)
        while watch.last is None:
            if reasons := watch.defects(time.monotonic()):
                pytest.skip(f"wake-ups cannot be watched here: {reasons[0]}")
            time.sleep(0.05)
        return watch.last
    finally:
        watch.close()


def test_who_was_watched_to_keep_a_protected_thread_waiting_is_named_without_a_guess():
    threads = ("lint-db", [HERE]), ("lint-batch", [HERE])
    windows = []

    def watch(snapshot):
        windows.append(watched(snapshot))
        return windows[-1]

    _, standing = judge_for_a_while(linter_of(**BUSY_HOST), *threads, watch=watch)

    behind = [[b for b in w.blockings if b.waiter.comm == "lint-db"] for w in windows]
    if any(sum(b.waited_s for b in each) < 0.02 for each in behind):
        pytest.skip("so many others wait on this machine that ours are not among the worst")
    [found] = [each for each in standing if each.invariant == "antagonist"]
    assert found.subject == "shop/db lint-db"
    assert "of a watched window" in found.message
    assert comm_in(found.evidence["runner"]) in {b.runner.comm for b in behind[-1]}
    assert "inferred" not in found.evidence
