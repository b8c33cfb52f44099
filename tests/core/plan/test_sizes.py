import attrs
import pytest

from temper_core.plan import compile_plan
from temper_core.records.machine import Cpu, MachineShape
from temper_core.records.tiers import Isolation, LayerKind, Tier
from temper_core.settings import Settings
from temper_core.settings.tiers import PlanSettings, Tiers, TierSettings

CRITICAL, HIGH, LOW = 1_000_000, 100_000, -50


def size_of(plan, name):
    layer = plan.layer_named(name)
    return layer.kind, layer.cpus_min, layer.cpus_max


def test_a_plan_of_no_pods_has_the_two_layers_that_every_plan_has(plan):
    made = plan()

    assert [layer.name for layer in made.layers] == ["system", "open"]
    assert made.layers[-1].matches == ((),)


def test_an_untouched_cluster_has_nothing_fenced(plan, pod):
    kube_proxy = pod("kube-proxy", 2_000_001_000, 100)
    made = plan(kube_proxy, pod("coredns", 2_000_000_000, 100), pod("web", None, 500), pod("batch"))

    assert all(layer.kind is not LayerKind.CONFINED for layer in made.layers)
    assert made.layer_named("system").members == ("default/coredns", "default/kube-proxy")
    assert made.layer_named("normal").members == ("default/web",)
    assert made.layer_named("open").members == ("default/batch",)


@pytest.mark.parametrize(
    ("request_millis", "limit", "expected"),
    [
        (0, 100, (2, 2)),
        (1, 1, (2, 2)),
        (2000, 2000, (2, 2)),
        (2001, 2001, (4, 4)),
        (3000, 3000, (4, 4)),
        (2000, 6000, (2, 6)),
    ],
)
def test_a_critical_layer_is_sized_in_whole_cores(plan, pod, request_millis, limit, expected):
    made = plan(pod("a", CRITICAL, request_millis, limit))

    assert size_of(made, "critical") == (LayerKind.CONFINED, *expected)


def test_pods_of_one_tier_share_a_layer_sized_to_their_sum(plan, pod):
    made = plan(pod("a", CRITICAL, 1500, 1500), pod("b", CRITICAL, 1600, 1600))

    assert size_of(made, "critical") == (LayerKind.CONFINED, 4, 4)


def test_a_member_without_a_limit_opens_the_maximum_to_all_that_is_left(plan, pod):
    made = plan(pod("a", CRITICAL, 1000, 1000), pod("b", CRITICAL, 100))

    assert size_of(made, "system") == (LayerKind.GROUPED, 2, 2)
    assert size_of(made, "critical") == (LayerKind.CONFINED, 2, 12)


def test_high_and_normal_are_grouped_and_only_normal_may_shrink_to_nothing(plan, pod):
    made = plan(pod("a", HIGH, 2500, 2500), pod("b", None, 2500, 2500))

    assert size_of(made, "high") == (LayerKind.GROUPED, 4, 4)
    assert size_of(made, "normal") == (LayerKind.GROUPED, 0, 4)


def test_low_and_background_own_nothing_and_need_no_matcher(plan, pod):
    made = plan(pod("a", LOW, 1000), pod("b", -1000, 1000))

    assert [layer.name for layer in made.layers] == ["system", "open"]
    assert made.layer_named("open").members == ("default/a", "default/b")


def test_what_is_left_is_shared_evenly_where_nobody_has_a_limit(plan, pod):
    pods = [pod("a", CRITICAL, 100), pod("b", HIGH, 100), pod("c", None, 100)]

    made = plan(*pods, cores=16)

    assert [size_of(made, name)[2] for name in ("critical", "high", "normal")] == [10, 10, 8]


def test_requests_are_served_before_anybody_grows_to_a_limit(plan, pod):
    made = plan(pod("a", CRITICAL, 100), pod("b", None, 9000), cores=8)

    assert size_of(made, "critical") == (LayerKind.CONFINED, 2, 2)
    assert size_of(made, "normal") == (LayerKind.GROUPED, 0, 10)


def test_on_two_cores_a_critical_pod_of_two_cpus_is_fenced_on_one(plan, pod):
    made = plan(pod("a", CRITICAL, 2000, 2000), cores=2)

    assert size_of(made, "critical") == (LayerKind.CONFINED, 2, 2)
    assert not made.layer_named("critical").demoted


def test_on_two_cores_a_critical_pod_of_three_cpus_is_demoted_with_the_numbers(plan, pod):
    made = plan(pod("a", CRITICAL, 3000, 3000), cores=2)

    layer = made.layer_named("critical")
    assert (layer.kind, layer.demoted, layer.preempt) == (LayerKind.GROUPED, True, False)
    assert (layer.cpus_min, layer.cpus_max) == (2, 2)
    note = next(note for note in made.notes if note.code == "demoted")
    assert note.subject == "critical"
    for part in ("3000m", "2 cores of 2 CPUs", "1 of 2 cores can be owned", "at most 2 CPUs"):
        assert part in note.message


def test_the_last_core_goes_to_normal_where_the_system_layer_can_do_without(plan, pod, codes):
    made = plan(pod("web", None, 500), cores=2)

    assert size_of(made, "normal") == (LayerKind.GROUPED, 0, 2)
    assert size_of(made, "system") == (LayerKind.OPEN, None, None)
    assert made.layer_named("system").preempt
    assert ("no_own_core", "system") in codes(made)


def test_the_last_core_goes_to_the_system_layer_where_the_kinds_would_not_load(plan, pod, codes):
    made = plan(pod("api", HIGH, 500), pod("web", None, 500), cores=3)

    assert size_of(made, "system") == (LayerKind.GROUPED, 2, 2)
    assert made.layer_named("normal") is None
    assert made.layer_named("open").members == ("default/web",)
    assert ("no_own_core", "normal") in codes(made)


def test_a_machine_of_one_core_has_nothing_to_own_and_says_so(plan, pod, codes):
    made = plan(pod("a", CRITICAL, 500), cores=1)

    assert [(layer.name, layer.kind) for layer in made.layers] == [
        ("system", LayerKind.OPEN),
        ("open", LayerKind.OPEN),
    ]
    assert {("small_machine", "node"), ("no_own_core", "critical")} <= codes(made)


def test_reserved_cores_are_left_to_nobody(plan, pod):
    settings = Settings(plan=PlanSettings(reserve_cores=5))

    made = plan(pod("a", CRITICAL, 100), pod("b", HIGH, 100), settings=settings)

    assert sum(layer.cpus_max or 0 for layer in made.layers) == 2 * 3


def test_on_a_hybrid_machine_the_first_core_is_the_unit(plan, pod):
    wide = [Cpu(id=n, core=n // 2) for n in range(8)]
    narrow = [Cpu(id=8 + n, core=4 + n, capacity=640) for n in range(4)]
    machine = MachineShape("x86_64", (*wide, *narrow))

    made = plan(pod("a", CRITICAL, 2500), machine=machine)

    assert size_of(made, "critical") == (LayerKind.CONFINED, 4, 8)
    assert sum(layer.cpus_max or 0 for layer in made.layers) == 12 - 2


def test_the_settings_of_a_tier_are_the_settings_of_its_layer(plan, pod):
    given = TierSettings(LayerKind.GROUPED, True, True, 7_000, 333, (0.1, 0.9))
    settings = Settings(tiers=attrs.evolve(Tiers(), low=given))

    layer = plan(pod("a", LOW, 1000, 1000), settings=settings).layer_named("low")

    assert (layer.kind, layer.protected, layer.preempt) == (LayerKind.GROUPED, True, True)
    assert (layer.slice_us, layer.weight, layer.util_range) == (7_000, 333, (0.1, 0.9))


def test_the_default_layers_are_those_of_the_tier_table(plan, pod):
    made = plan(pod("a", CRITICAL, 100), pod("b", HIGH, 100), pod("c", None, 100))

    assert {
        layer.name: (layer.kind.value, layer.protected, layer.preempt, layer.slice_us, layer.weight)
        for layer in made.layers
    } == {
        "system": ("Grouped", False, True, 5_000, 1000),
        "critical": ("Confined", True, False, 5_000, 1000),
        "high": ("Grouped", True, True, 10_000, 500),
        "normal": ("Grouped", False, False, 20_000, 100),
        "open": ("Open", False, False, 5_000, 50),
    }
    assert not any(layer.exclusive for layer in made.layers)


def test_kinds_that_would_not_load_are_avoided_whatever_the_settings(plan, pod):
    tiers = attrs.evolve(Tiers(), high=TierSettings(LayerKind.GROUPED, preempt=False))

    made = plan(
        pod("a", CRITICAL, 6000),
        pod("b", HIGH, 100),
        cores=3,
        settings=Settings(tiers=tiers),
    )

    assert made.layer_named("system").kind is LayerKind.GROUPED
    assert made.layer_named("critical").tier is Tier.CRITICAL


def test_what_high_cannot_have_leaves_a_core_to_those_behind_it(plan, pod):
    made = plan(pod("a", HIGH, 16_000), pod("b", None, 100))

    assert size_of(made, "high") == (LayerKind.GROUPED, 10, 10)
    assert size_of(made, "system") == (LayerKind.GROUPED, 2, 2)
    assert size_of(made, "normal") == (LayerKind.GROUPED, 0, 2)


def test_a_pod_that_the_node_cannot_hold_takes_no_fence_from_others(plan, pod):
    db = pod("db", CRITICAL, 3000)

    made = plan(db, pod("huge", CRITICAL, 17_000))

    assert size_of(made, "critical")[:2] == size_of(plan(db), "critical")[:2]
    assert [(note.code, note.subject) for note in made.notes] == [("too_large", "default/huge")]


def test_the_order_of_assignments_changes_nothing(plan, pod):
    made = plan(*(pod(f"p{n}", CRITICAL, 100) for n in range(5)))

    again = compile_plan(reversed(made.assignments), made.machine, Settings())

    assert again.layers == made.layers


@pytest.fixture
def lending():
    lent = attrs.evolve(Tiers().critical, isolation=Isolation.LEND)
    return Settings(tiers=attrs.evolve(Tiers(), critical=lent))


def test_a_tier_that_lends_preempts_and_open_threads_have_short_slices(plan, pod, lending):
    made = plan(pod("a", CRITICAL, 100), settings=lending)

    critical = made.layer_named("critical")
    assert (critical.kind, critical.protected, critical.preempt) == (
        LayerKind.CONFINED,
        False,
        True,
    )
    assert made.layer_named("open").slice_us == 1_000


def test_without_a_pod_of_the_tier_that_lends_slices_stay_as_they_are(plan, pod, lending):
    made = plan(pod("a", HIGH, 100), settings=lending)

    assert made.layer_named("open").slice_us == 5_000


def test_a_tier_that_may_not_preempt_does_not_lend(plan, pod, lending):
    demoted = plan(pod("a", CRITICAL, 4_000), cores=2, settings=lending).layer_named("critical")

    assert (demoted.kind, demoted.protected, demoted.preempt) == (LayerKind.GROUPED, True, False)


def test_high_is_confined_where_it_leaves_the_system_layer_no_core(plan, pod):
    made = plan(pod("a", HIGH, 100), cores=2)

    high = made.layer_named("high")
    assert (high.kind, high.preempt, high.protected, high.demoted) == (
        LayerKind.CONFINED,
        False,
        True,
        True,
    )
    assert "no core is left for the system layer" in high.reason
    assert plan(pod("a", HIGH, 100), cores=3).layer_named("high").kind is LayerKind.GROUPED


def test_a_tier_that_loses_preemption_is_noted(plan, pod):
    made = plan(pod("a", HIGH, 4_000), cores=2)

    assert made.layer_named("high").kind is LayerKind.GROUPED
    assert ("no_preempt", "high") in {(note.code, note.subject) for note in made.notes}
