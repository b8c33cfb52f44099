"""The agent and its engine keep off the CPUs that a tier lends."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from attrs import evolve

from temper_core.agent.own_cpus import OwnCpus, lent_cpus
from temper_core.records.layers import Layer
from temper_core.records.snapshots import LayerSample
from temper_core.records.tiers import LayerKind, Tier

ALL = frozenset(os.sched_getaffinity(0))
THREE_THREADS = """
import threading, time
for _ in range(2):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""

needs_two_cpus = pytest.mark.skipif(len(ALL) < 2, reason="this machine has one CPU")


def layer(name, **kept):
    return evolve(
        Layer(name, LayerKind.CONFINED, ((),), Tier.CRITICAL, cpus_min=2, cpus_max=2), **kept
    )


def sample(name, *cpus):
    return LayerSample(name, LayerKind.CONFINED, cpus, 0.1, 0.1, 3)


@pytest.fixture
def own():
    own = OwnCpus()
    yield own
    own.follow(frozenset(), None)
    assert os.sched_getaffinity(0) == ALL


@pytest.fixture
def engine():
    with subprocess.Popen([sys.executable, "-c", THREE_THREADS], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        yield child.pid
        child.kill()


def stat_of(start_ticks):
    return f"1 (a thread) {' '.join(['0'] * 19)} {start_ticks} 0"


def affinities(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {frozenset(os.sched_getaffinity(int(task.name))) for task in tasks}


class TestLentCpus:
    def test_a_tier_that_preempts_and_is_not_protected_lends(self):
        layers = [layer("critical", preempt=True)]
        assert lent_cpus(layers, [sample("critical", 0, 1)]) == {0, 1}

    @pytest.mark.parametrize(
        "kept",
        [
            {"preempt": True, "protected": True},
            {"preempt": False, "protected": False},
            {"preempt": True, "tier": None},
        ],
        ids=["protected", "takes nothing back", "no tier"],
    )
    def test_other_layers_lend_nothing(self, kept):
        assert lent_cpus([layer("critical", **kept)], [sample("critical", 0, 1)]) == frozenset()

    def test_a_layer_of_another_plan_lends_nothing(self):
        assert lent_cpus([layer("critical", preempt=True)], [sample("high", 0)]) == frozenset()


@needs_two_cpus
class TestOwnCpus:
    def test_all_threads_of_agent_and_engine_leave_a_lent_cpu(self, own, engine):
        resting = threading.Event()
        threading.Thread(target=resting.wait, daemon=True).start()
        lent = frozenset({min(ALL)})
        try:
            own.follow(lent, engine, (engine,))
            assert affinities(os.getpid()) == affinities(engine) == {ALL - lent}
        finally:
            resting.set()

    def test_they_come_back_when_nothing_is_lent(self, own, engine):
        own.follow(frozenset({min(ALL)}), engine, (engine,))
        own.follow(frozenset(), engine, (engine,))
        assert affinities(os.getpid()) == affinities(engine) == {ALL}

    def test_they_come_back_without_an_engine(self, own):
        own.follow(frozenset({min(ALL)}), os.getpid(), ())
        assert affinities(os.getpid()) == {ALL - {min(ALL)}}
        own.follow(frozenset({min(ALL)}), None)
        assert affinities(os.getpid()) == {ALL}

    def test_an_engine_that_loads_keeps_all_cpus(self, own, engine):
        os.sched_setaffinity(engine, {min(ALL)})  # as if inherited
        own.follow(frozenset({max(ALL)}), os.getpid(), (os.getpid(), engine))
        assert frozenset(os.sched_getaffinity(engine)) == ALL

    def test_all_cpus_lent_restrict_nothing(self, own, engine):
        own.follow(ALL, engine, (engine,))
        assert affinities(os.getpid()) == affinities(engine) == {ALL}

    def test_an_engine_that_has_ended_is_ignored(self, own, engine):
        os.kill(engine, 9)
        os.waitpid(engine, 0)
        own.follow(frozenset({min(ALL)}), engine, (engine,))
        assert affinities(os.getpid()) == {ALL - {min(ALL)}}

    def test_nothing_is_touched_before_something_is_lent(self, own, engine):
        os.sched_setaffinity(engine, {min(ALL)})
        own.follow(frozenset(), engine, (engine,))
        assert frozenset(os.sched_getaffinity(engine)) == {min(ALL)}

    def test_an_id_that_is_of_another_process_by_now_is_left_alone(self, engine, tmp_path):
        (tmp_path / str(os.getpid()) / "task" / str(engine)).mkdir(parents=True)

        OwnCpus(str(tmp_path)).follow(frozenset({min(ALL)}), os.getpid())

        assert frozenset(os.sched_getaffinity(engine)) == ALL

    @pytest.mark.parametrize("start_ticks", [None, 8], ids=["another process", "same process"])
    def test_a_thread_that_took_the_id_meanwhile_gets_its_cpus_back(
        self, engine, tmp_path, monkeypatch, start_ticks
    ):
        stat = tmp_path / str(os.getpid()) / "task" / str(engine) / "stat"
        stat.parent.mkdir(parents=True)
        stat.write_text(stat_of(7))
        set_affinity = os.sched_setaffinity

        def set_while_the_thread_ends(tid, cpus):
            set_affinity(tid, cpus)
            stat.write_text(stat_of(start_ticks)) if start_ticks else stat.unlink(missing_ok=True)

        monkeypatch.setattr(os, "sched_setaffinity", set_while_the_thread_ends)

        OwnCpus(str(tmp_path)).follow(frozenset({min(ALL)}), os.getpid())

        assert frozenset(os.sched_getaffinity(engine)) == ALL
