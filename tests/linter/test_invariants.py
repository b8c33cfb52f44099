import attrs
import pytest

import temper_plugin_linter
from temper_core import Layer, LayerKind, Mode, Status, Tier
from temper_core.testing import assert_keeps_contract, make_machine, make_snapshot, make_thread
from temper_plugin_linter.fences import open_reserve, protected_fallback
from temper_plugin_linter.layer_mismatch import layer_mismatch
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.placement_tracker import PlacementTracker
from temper_plugin_linter.smt_collision import smt_collision

INVARIANTS = [smt_collision, protected_fallback, open_reserve, layer_mismatch]
LIMITS = Limits()


def judge(invariant, *snapshots, limits=LIMITS):
    """Judge the last of *snapshots*, with what is remembered of those before it."""
    tracker = PlacementTracker(limits)
    return [list(invariant(tracker.look(snapshot))) for snapshot in snapshots][-1]


def critical(comm="db", **changes):
    return make_thread(comm, **{"layer": "critical", "tid": 1, "cpu_used": 0.9, **changes})


def best_effort(comm="spin", **changes):
    return make_thread(comm, **{"layer": "open", "tid": 2, "cpu_used": 0.9, **changes})


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_linter, "linter")


def test_a_busy_stranger_on_the_sibling_of_a_pinned_thread_is_a_collision(seen):
    victim = critical(cpu=0, namespace="shop", pod="db-0")
    noise = best_effort(cpu=1, cpu_used=0.55)

    [finding] = judge(smt_collision, seen(victim, noise))

    assert finding.subject == "shop/db-0 db"
    assert "other layers use 0.55 of its sibling CPU 1: spin[2]" in finding.message
    assert finding.evidence["sibling_cpu_used"] == pytest.approx(0.55)
    assert finding.fix


def test_strangers_on_a_sibling_are_counted_together(seen):
    small = [best_effort(cpu=1, cpu_used=0.2, tid=tid) for tid in (2, 3, 4)]

    assert len(judge(smt_collision, seen(critical(cpu=0), *small))) == 1
    assert judge(smt_collision, seen(critical(cpu=0), *small[:2])) == []


@pytest.mark.parametrize(
    ("victim", "noise"),
    [
        pytest.param({"cpu": 0, "cpu_used": 0.49}, {"cpu": 1}, id="the thread is not hot"),
        pytest.param({"cpu": 0}, {"cpu": 1, "cpu_used": 0.49}, id="the sibling is quiet"),
        pytest.param({"cpu": 0}, {"cpu": 2}, id="on another core"),
        pytest.param({"cpu": 0}, {"cpu": 0}, id="on the same CPU"),
        pytest.param({"cpu": 0, "layer": "high"}, {"cpu": 1}, id="the layer is not pinned"),
    ],
)
def test_what_is_no_collision_is_passed_over(victim, noise, seen):
    assert judge(smt_collision, seen(critical(**victim), best_effort(**noise))) == []


def test_two_hot_threads_of_a_pinned_tier_layer_on_one_core_are_a_collision(two_cores):
    # The published case: both threads of a Critical pod on CPUs 0 and 2, the other core idle.
    layer = Layer("critical", LayerKind.CONFINED, ((),), tier=Tier.CRITICAL)
    threads = critical("llama", tid=7, cpu=0), critical("llama", tid=8, cpu=2)
    snapshot = make_snapshot(*threads, machine=two_cores, layers={layer: (0, 2)})

    [finding] = judge(smt_collision, snapshot)

    assert finding.subject == "llama on one core"
    assert "llama[7] and llama[8] on CPUs 0 and 2" in finding.message


def test_a_collision_keeps_its_subject_wherever_its_threads_are_next(seen):
    [first] = judge(smt_collision, seen(critical("io-3", cpu=0, tid=5), best_effort(cpu=1)))
    [later] = judge(smt_collision, seen(critical("io-9", cpu=1, tid=6), best_effort(cpu=0)))

    assert first.subject == later.subject == "io-#"


def test_a_pool_of_disturbed_threads_is_one_finding_about_the_busiest(seen):
    pool = [critical(f"w-{n}", tid=n, cpu=0, cpu_used=0.6 + n / 100) for n in range(10, 20)]

    found = judge(smt_collision, seen(*pool, best_effort(cpu=1)))

    assert [finding.subject for finding in found] == ["w-#"]
    assert found[0].message.startswith("w-19[19] uses 0.79")


def test_two_hot_threads_on_two_cores_are_none(two_cores):
    layer = Layer("critical", LayerKind.CONFINED, ((),), tier=Tier.CRITICAL)
    threads = critical("llama", tid=7, cpu=0), critical("llama", tid=8, cpu=1)
    snapshot = make_snapshot(*threads, machine=two_cores, layers={layer: (0, 1, 2, 3)})

    assert judge(smt_collision, snapshot) == []


def test_an_exclusive_thread_group_is_judged_like_a_pinned_tier():
    group = Layer("db-connections", LayerKind.CONFINED, ((),), tier=Tier.HIGH, exclusive=True)
    threads = (
        make_thread("connection", tid=1, cpu=0, cpu_used=0.9, layer=group.name),
        make_thread("spin", tid=2, cpu=1, cpu_used=0.9, layer="open"),
    )

    assert len(judge(smt_collision, make_snapshot(*threads, layers={group: (0, 1)}))) == 1


def test_a_machine_without_siblings_has_no_collisions(seen):
    threads = critical(cpu=0), best_effort(cpu=1)

    assert judge(smt_collision, seen(*threads, machine=make_machine(4, 1))) == []


def test_pinned_work_beyond_its_fence_is_a_fallback(seen):
    inside, outside = critical(cpu=0, cpu_used=0.9), critical("stray", cpu=5, tid=9, cpu_used=0.1)

    [finding] = judge(protected_fallback, seen(inside, outside))

    assert finding.subject == "layer critical"
    assert "10% of its CPU use is outside CPUs 0, 1: stray[9]" in finding.message
    assert finding.evidence["stray_ratio"] == pytest.approx(0.1)


def counted(snapshot, **counts):
    """Return the snapshot with the engine's counts for the layer ``critical``."""
    layers = [
        attrs.evolve(sample, **counts) if sample.name == "critical" else sample
        for sample in snapshot.layers
    ]
    return attrs.evolve(snapshot, layers=tuple(layers))


def test_where_the_engine_counts_no_time_outside_a_thread_that_was_seen_there_is_none(seen):
    displaced = seen(critical(cpu=5, cpu_used=0.9))

    assert judge(protected_fallback, displaced)
    assert judge(protected_fallback, counted(displaced, outside_ratio=0.023)) == []


def test_the_share_outside_is_the_engines_count_and_the_fix_names_the_guests(seen):
    snapshot = seen(critical(cpu=0), best_effort(cpu=1, cpu_used=0.3))

    [finding] = judge(protected_fallback, counted(snapshot, outside_ratio=0.25))

    assert finding.message == "25% of its CPU use is outside CPUs 0, 1"
    assert finding.evidence["stray_ratio"] == 0.25
    assert finding.fix.startswith("threads of other layers were seen on its CPUs: spin[2]; ")


def test_what_the_engine_counts_as_fallback_is_one_even_if_no_thread_was_seen_outside(seen):
    snapshot = seen(critical(cpu=0))
    layers = [attrs.evolve(s, fallback_ratio=0.06) if s.name == "critical" else s
              for s in snapshot.layers]  # fmt: skip

    [finding] = judge(protected_fallback, attrs.evolve(snapshot, layers=tuple(layers)))

    assert finding.message == "the engine counts 6% of its events as fallback"


@pytest.mark.parametrize(
    "threads",
    [
        pytest.param([critical(cpu=0), critical(cpu=1)], id="all inside"),
        pytest.param(
            [critical(cpu=0, cpu_used=0.97), critical(cpu=5, cpu_used=0.03)], id="under 5 %"
        ),
        pytest.param([critical(cpu=5, cpu_used=0.02)], id="hardly any work at all"),
        pytest.param([critical(cpu=5, layer="high")], id="a layer without a fence"),
    ],
)
def test_a_fence_that_holds_is_silent(threads, seen):
    assert judge(protected_fallback, seen(*threads)) == []


def owning(snapshot, **owned):
    """Return the snapshot a window later, with other CPUs for some layers."""
    layers = [
        attrs.evolve(sample, cpus=owned.get(sample.name, sample.cpus)) for sample in snapshot.layers
    ]
    return attrs.evolve(
        snapshot, layers=tuple(layers), monotonic_s=snapshot.monotonic_s + snapshot.window_s
    )


def test_a_cpu_that_the_layer_has_just_lost_is_no_fallback(seen):
    now = seen(critical(cpu=3))
    before = owning(now, critical=(0, 1, 2, 3))

    assert judge(protected_fallback, now)
    assert judge(protected_fallback, before, owning(now)) == []


def test_a_cpu_that_a_protected_layer_has_just_gained_is_no_broken_reserve(seen):
    now = seen(best_effort(cpu=3))
    before = owning(now, high=())

    assert judge(open_reserve, now)
    assert judge(open_reserve, before, owning(now)) == []
    assert judge(open_reserve, before, owning(now), owning(owning(now)))


@pytest.mark.parametrize("invariant", INVARIANTS)
@pytest.mark.parametrize(
    "change", [{"mode": Mode.RELOADING}, {"generation": 7}, {"engine": "scx_layered 1.1.2"}]
)
def test_a_new_engine_is_given_two_windows_to_settle(invariant, change, seen):
    broken = seen(
        critical(cpu=0, expected_layer="high"),
        critical(cpu=5, tid=3),
        best_effort(cpu=1),
        reserve_cores=4,
    )
    other = attrs.evolve(broken, status=attrs.evolve(broken.status, **change))
    windows = [other, owning(broken)]
    while len(windows) < 4:
        windows.append(owning(windows[-1]))

    judged = [judge(invariant, *windows[: number + 1]) for number in range(len(windows))]

    assert judged[1:3] == [[], []]
    assert judged[3]


@pytest.mark.parametrize("cpu", [0, 3])
def test_open_work_on_a_protected_cpu_breaks_the_reserve(cpu, seen):
    intruder, home = best_effort(cpu=cpu, cpu_used=0.1), best_effort(cpu=4, tid=3)

    [finding] = judge(open_reserve, seen(intruder, home))

    assert finding.subject == "layer open"
    assert "10% of its CPU use is on CPUs of protected layers: spin[2]" in finding.message


def test_open_work_where_nobody_is_protected_is_silent(seen):
    assert judge(open_reserve, seen(best_effort(cpu=4), best_effort(cpu=6, tid=3))) == []


def test_a_node_that_leaves_too_few_cores_breaks_the_reserve(seen):
    snapshot = seen(critical(cpu=0), reserve_cores=3)

    [finding] = judge(open_reserve, snapshot)

    assert finding.subject == "node"
    assert "2 of 4 cores are left" in finding.message
    assert finding.evidence == {"cores_left": 2, "reserve_cores": 3, "cores": 4}


def test_the_system_layers_core_counts_as_left(seen):
    assert judge(open_reserve, seen(critical(cpu=0), reserve_cores=2)) == []


def test_a_thread_in_another_layer_than_the_plans_is_a_mismatch(seen):
    pod = {"namespace": "shop", "pod": "db-0", "expected_layer": "critical"}
    strays = [best_effort("db", tid=tid, cpu_used=tid / 10, **pod) for tid in (1, 2, 3, 4)]

    [finding] = judge(layer_mismatch, seen(*strays, critical(tid=5, **pod)))

    assert finding.subject == "shop/db-0 in critical"
    assert finding.evidence["inferred"] == 1
    assert finding.message.startswith("4 of 5 threads that belong in layer 'critical' run in open")
    assert finding.message.endswith("shop/db-0 db[4], shop/db-0 db[3], shop/db-0 db[2]")


@pytest.mark.parametrize(
    "thread",
    [
        pytest.param({"layer": "critical"}, id="where it belongs"),
        pytest.param({"age_s": 10.0}, id="still settling"),
        pytest.param({"layer": ""}, id="not seen by the engine"),
        pytest.param({"is_kthread": True}, id="a thread of the kernel"),
        pytest.param({"policy": "fifo"}, id="a real-time thread"),
    ],
)
def test_a_thread_that_is_no_mismatch_is_passed_over(thread, seen):
    stray = best_effort(**{"expected_layer": "critical", **thread})

    assert judge(layer_mismatch, seen(stray)) == []


def test_a_thread_whose_hint_leads_elsewhere_is_told_apart_from_one_that_follows_late(seen):
    stray = {"expected_layer": "critical", "layer": "open", "layer_is_known": True}

    [late] = judge(layer_mismatch, seen(best_effort(hinted_layer="critical", **stray)))
    [misled] = judge(layer_mismatch, seen(best_effort(hinted_layer="open", **stray)))

    assert (late.evidence["hinted_elsewhere"], misled.evidence["hinted_elsewhere"]) == (0, 1)
    assert "renice" in late.fix
    assert "Temper's hints" in misled.fix


def test_the_engines_count_is_no_second_finding_where_each_threads_layer_is_known(seen):
    threads = [critical(tid=n, expected_layer="critical", layer_is_known=True) for n in range(4)]

    assert judge(layer_mismatch, with_tasks(seen(*threads), "critical", 0)) == []


def with_tasks(snapshot, layer, tasks):
    layers = [
        attrs.evolve(sample, tasks=tasks if sample.name == layer else sample.tasks)
        for sample in snapshot.layers
    ]
    return attrs.evolve(snapshot, layers=tuple(layers))


@pytest.mark.parametrize(("counted", "findings"), [(4, 0), (3, 0), (2, 1), (0, 1)])
def test_a_layer_in_which_the_engine_misses_threads_is_a_mismatch(seen, counted, findings):
    threads = [critical(tid=tid, expected_layer="critical") for tid in range(4)]

    found = judge(layer_mismatch, with_tasks(seen(*threads), "critical", counted))

    assert [finding.subject for finding in found] == ["layer critical"] * findings
    evidence = {"threads": 4, "counted": counted, "inferred": 1}
    assert all(finding.evidence == evidence for finding in found)


def test_a_thousand_strays_of_one_pod_are_one_finding(seen):
    pod = {"pod": "db-0", "expected_layer": "critical"}
    strays = [best_effort(tid=tid, **pod) for tid in range(1000)]

    [finding] = judge(layer_mismatch, seen(*strays))

    assert finding.evidence["strays"] == 1000
    assert len(finding.message) < 200


@pytest.mark.parametrize("invariant", INVARIANTS)
@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.ENFORCING])
def test_nothing_is_promised_while_the_node_does_not_enforce(invariant, mode, seen):
    broken = [
        critical(cpu=0, expected_layer="high"),
        critical(cpu=5, tid=3),
        best_effort(cpu=1),
    ]
    enforcing = seen(*broken, reserve_cores=4)
    resting = attrs.evolve(enforcing, status=Status(mode))

    assert judge(invariant, enforcing)
    assert judge(invariant, resting) == []


def test_the_thresholds_are_settings(seen):
    snapshot = seen(critical(cpu=0), best_effort(cpu=1, cpu_used=0.2))

    assert judge(smt_collision, snapshot) == []
    assert judge(smt_collision, snapshot, limits=Limits(noisy_cpu=0.2))
