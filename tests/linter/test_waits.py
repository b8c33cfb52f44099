import attrs
import pytest

from temper_core import Blocking, Mode, Party, Section, Status, WakeWindow
from temper_core.testing import make_thread
from temper_plugin_linter.antagonist import antagonist
from temper_plugin_linter.real_time import rt_hog
from temper_plugin_linter.starvation import longest_wait_s, starvation
from temper_plugin_tracer.document import window_document


def waiter(**changes):
    pod = {"namespace": "shop", "pod": "db", "layer": "critical", "cpu": 1, "tid": 1}
    return make_thread("conn-7", **{**pod, "cpu_used": 0.4, "run_delay_ratio": 0.3, **changes})


def runner(**changes):
    pod = {"namespace": "shop", "pod": "batch", "layer": "open", "cpu": 1, "tid": 2}
    return make_thread("spin", **{**pod, "cpu_used": 0.6, **changes})


def test_who_used_the_cpu_of_a_waiting_protected_thread_is_named_as_inferred(seen, judge):
    [finding] = judge(antagonist, seen(waiter(), runner()))

    assert finding.subject == "shop/db conn-#"
    assert "waited 30% of the window; its CPU 1 was used by shop/batch spin[2]" in finding.message
    assert "inferred" in finding.message
    assert (finding.evidence["runner"], finding.evidence["inferred"]) == ("shop/batch spin[2]", 1)


@pytest.mark.parametrize(
    ("waits", "runs"),
    [
        pytest.param({"run_delay_ratio": 0.09}, {}, id="it hardly waits"),
        pytest.param({"layer": "open"}, {}, id="nobody promised it anything"),
        pytest.param({"policy": "fifo"}, {}, id="a real-time thread"),
        pytest.param({}, {"cpu": 2}, id="the other ran elsewhere"),
        pytest.param({}, {"cpu_used": 0.04}, id="the other ran too little to be blamed"),
        pytest.param({}, {"pod": "db"}, id="its own pod"),
    ],
)
def test_where_nobody_can_be_blamed_nobody_is(waits, runs, seen, judge):
    assert judge(antagonist, seen(waiter(**waits), runner(**runs))) == []


def test_the_own_pods_threads_bear_their_part_of_the_blame(seen, judge):
    sibling = waiter(tid=3, cpu_used=0.4, run_delay_ratio=0.0)
    little, much = runner(cpu_used=0.15), runner(cpu_used=0.4)

    [finding] = judge(antagonist, seen(waiter(), sibling, much))

    assert finding.evidence["blamed_ratio"] == pytest.approx(0.15)
    assert judge(antagonist, seen(waiter(), sibling, little)) == []


def watched(at, waited_s=0.02, runner_pod="shop/batch", layer="critical"):
    waits = Party(1, "conn-7", "db", pod="shop/db", layer=layer)
    runs = Party(2, "spin", "spin", pod=runner_pod, layer="open")
    blockings = (Blocking(waits, runs, waits=9, waited_s=waited_s),)
    return WakeWindow(at, 0.1, every_s=30.0, switches_per_s=1e4, blockings=blockings)


def sections(window):
    return {"tracer": Section(1, window_document(window))} if window is not None else {}


def over(seen, next_window, *wakes):
    """Return one snapshot for each watched window, or None, that was last when it was made."""
    snapshots = [seen(sections=sections(wakes[0]))]
    for each in wakes[1:]:
        snapshots.append(next_window(snapshots[-1], sections=sections(each)))
    return snapshots


def test_who_ran_is_known_where_wake_ups_are_watched(seen, judge, next_window):
    snapshots = over(seen, next_window, watched(1.0), watched(31.0, waited_s=0.03))

    [finding] = judge(antagonist, *snapshots)

    assert finding.subject == "shop/db conn-#"
    assert "waited 30% of a watched window" in finding.message
    assert "mostly shop/batch spin[2] (30.0 ms in 9 waits)" in finding.message
    assert "inferred" not in finding.evidence


def test_a_layer_that_the_watcher_did_not_know_is_looked_up(seen, judge, next_window):
    snapshots = over(seen, next_window, watched(1.0, layer=""), watched(31.0, layer=""))
    known = attrs.evolve(snapshots[-1], threads=(waiter(run_delay_ratio=0.0),))

    assert judge(antagonist, *snapshots) == []
    assert len(judge(antagonist, *snapshots[:-1], known)) == 1


@pytest.mark.parametrize(
    "wakes",
    [
        pytest.param([watched(1.0)], id="one window"),
        pytest.param([watched(1.0)] * 5, id="one window in many snapshots"),
        pytest.param([watched(1.0), watched(31.0, 0.005)], id="it waited in one of two"),
        pytest.param([watched(1.0, 0.005), watched(31.0)], id="it waited in the other of two"),
        pytest.param([watched(1.0, runner_pod="shop/db")] * 2, id="behind its own pod"),
        pytest.param([watched(1.0, layer="open"), watched(2.0, layer="open")], id="not protected"),
        pytest.param([watched(1.0), None, watched(61.0)], id="nobody watched in between"),
    ],
)
def test_one_watched_window_is_not_enough(wakes, seen, judge, next_window):
    assert judge(antagonist, *over(seen, next_window, *wakes)) == []


@pytest.mark.parametrize("section", [Section(1, {"at": 1}), Section(9, {})])
def test_a_section_that_cannot_be_read_counts_as_nothing_watched(section, seen, judge, next_window):
    snapshots = over(seen, next_window, watched(1.0), watched(31.0))
    bad = next_window(snapshots[-1], sections={"tracer": section})

    assert judge(antagonist, *snapshots, bad) == []


def test_a_real_time_thread_that_keeps_a_cpu_is_a_hog_under_every_scheduler(seen, judge):
    hog = make_thread("jackd", policy="rr", rt_priority=80, cpu=3, cpu_used=0.7)
    resting = attrs.evolve(seen(hog), status=Status(Mode.OBSERVE_ONLY))

    [finding] = judge(rt_hog, resting)

    assert finding.subject == "jackd"
    assert "rr thread of priority 80 uses 0.70 of CPU 3" in finding.message
    assert "chrt" in finding.fix


def test_a_busy_interrupt_thread_has_another_cure(seen, judge):
    [finding] = judge(
        rt_hog, seen(make_thread("irq/42-nvme0q1", policy="fifo", cpu_used=0.9, is_kthread=True))
    )

    assert finding.subject == "irq/#-nvme#q#"
    assert "/proc/irq" in finding.fix


@pytest.mark.parametrize("thread", [{"policy": "other"}, {"policy": ""}, {"cpu_used": 0.4}])
def test_who_is_not_real_time_or_not_busy_is_no_hog(thread, seen, judge):
    calm = make_thread("calm", **{"policy": "fifo", "cpu_used": 1.0, **thread})

    assert judge(rt_hog, seen(calm)) == []


def starved(**changes):
    return make_thread("slow", **{"cpu_used": 0.001, "run_delay_ratio": 0.9, **changes})


@pytest.mark.parametrize(
    ("thread", "waits_s"),
    [
        ({"waiting_s": 2.5, "run_delay_ratio": 0.0}, 2.5),
        ({"runs": 2}, 2.25),
        ({"runs": 0}, 4.5),
        ({"runs": 450}, 0.01),
        ({}, 0.0),
        ({"run_delay_ratio": 0.99}, 4.95),
        ({"run_delay_ratio": 0.99, "cpu_used": 0.01}, 0.0),
    ],
)
def test_how_long_a_thread_waits_at_a_time_is_told_by_what_is_counted(thread, waits_s):
    assert longest_wait_s(starved(**thread), 5.0) == pytest.approx(waits_s)


def test_a_thread_that_waits_for_seconds_starves_under_every_scheduler(seen, judge):
    snapshot = attrs.evolve(
        seen(starved(waiting_s=3.0, cpu=2)), status=Status(Mode.SAFE_MODE, "requested")
    )

    [finding] = judge(starvation, snapshot)

    assert finding.subject == "slow"
    assert finding.message.startswith("waited 3.0 s for a CPU")
    assert "rt_hog" in finding.fix


def test_the_cure_for_a_starving_thread_that_is_bound_is_to_unbind_it(seen, judge):
    [finding] = judge(starvation, seen(starved(waiting_s=3.0, affinity=(2,))))

    assert finding.fix.startswith("it may run on CPUs 2 only")


@pytest.mark.parametrize(
    "thread",
    [
        pytest.param({"runs": 100}, id="many short waits, as on any busy node"),
        pytest.param({"waiting_s": 0.9, "runs": 9}, id="less than a second"),
        pytest.param({"waiting_s": 9.0, "policy": "idle"}, id="it asked for it"),
        pytest.param({"waiting_s": 9.0, "namespace": "shop", "pod": "web"}, id="throttled"),
    ],
)
def test_who_is_not_starved_is_passed_over(thread, seen, judge, sample):
    pods = (sample("web", throttled_ratio=0.8, quota_cores=0.1),)

    assert judge(starvation, seen(starved(**thread), pods=pods)) == []
