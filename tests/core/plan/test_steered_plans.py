"""Steered plans: layers that match by hint, and what is in force before anybody needs it."""

import json
from pathlib import Path

import attrs
import pytest

from temper_core.engine.binary import verify_offline
from temper_core.engine.capabilities import capabilities_of
from temper_core.engine.configuration_check import check
from temper_core.plan import plan_document, render_engine
from temper_core.plan.capacity import Capacity
from temper_core.plan.rounds import CoreGrant, Round, Spare
from temper_core.records.steering import FIRST_GROUP_HINT, FIXED_HINTS
from temper_core.records.thread_groups import Behaviour, ThreadGroup, ThreadMatch, Treatment
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings import Settings
from temper_core.settings.tiers import PlanSettings, Tiers, TierSettings

CRITICAL, HIGH, NORMAL, LOW = 1_000_000, 100_000, 1, -50
HINT_MAP = "--task-hint-map=/sys/fs/bpf/temper/hints"


@pytest.fixture
def sized():
    """Make settings by headroom and reserve, in cores."""

    def make(headroom, reserve=1, **changes):
        return Settings(plan=PlanSettings(reserve, headroom), **changes)

    return make


@pytest.fixture
def sizes():
    """Return what each owning layer of a plan may own, in CPUs, by its name."""

    def of(plan):
        owning = [layer for layer in plan.layers if layer.kind is not LayerKind.OPEN]
        return {layer.name: (layer.cpus_min, layer.cpus_max) for layer in owning}

    return of


@pytest.fixture
def matches_of():
    """Return the matchers of a layer in the configuration, as the engine is told them."""

    def of(plan, name):
        layers = json.loads(render_engine(plan))
        return next(layer["matches"] for layer in layers if layer["name"] == name)

    return of


@pytest.fixture
def sighted(profile):
    """A profile of which the engine itself could tell no thread from another."""
    return profile(
        "web",
        ThreadGroup("busy", (ThreadMatch(behaviour=Behaviour((0.8, 1.0))),), Treatment.EXCLUSIVE),
        ThreadGroup("io", (ThreadMatch(title_pattern="--io"),), Treatment.LATENCY),
        ThreadGroup("gc", (ThreadMatch(comm_pattern="^gc[0-9]"),), Treatment.YIELD),
        ThreadGroup("rest", (), Treatment.NORMAL),
    )


def test_a_plan_without_steering_has_neither_hints_nor_places(plan, pod):
    made = plan(pod("a", HIGH, 100))

    assert not made.is_steered
    assert (made.hints, made.steering) == ({}, ())
    assert "Hint" not in render_engine(made)


def test_groups_and_tiers_come_before_what_the_engine_matches_by_itself(
    steered, pod, mysql, with_image
):
    database = with_image(pod("db", CRITICAL, 1500), "mysql:8")

    made = steered(database, pod("web", HIGH, 100), pod("x", None, 10), profiles=[mysql])

    assert [layer["name"] for layer in json.loads(render_engine(made))] == [
        "mysql.connections.critical",
        "critical",
        "high",
        "normal",
        "system",
        "open",
        "unmatched",
    ]
    assert [layer.name for layer in made.layers][-1] == "open"


def test_each_layer_is_led_to_by_its_own_hint(steered, pod, mysql, with_image, matches_of):
    made = steered(with_image(pod("db", CRITICAL, 1500), "mysql:8"), profiles=[mysql])

    assert made.hints == {
        "mysql.connections.critical": FIRST_GROUP_HINT,
        **{name: FIXED_HINTS[name] for name in ("critical", "high", "normal", "system", "open")},
    }
    for name, hint in made.hints.items():
        assert matches_of(made, name)[0] == [{"HintEquals": hint}]
        assert made.layer_named(name).hint == hint
    assert len(matches_of(made, "critical")) == 1


def test_open_takes_everything_and_the_engines_last_layer_gets_nothing(steered, pod, matches_of):
    made = steered(pod("a", HIGH, 100))

    assert matches_of(made, "open") == [[{"HintEquals": 2}], [{"CgroupPrefix": ""}]]
    assert matches_of(made, "unmatched") == [[]]
    assert made.layer_named("unmatched") is None


def test_the_system_layer_names_the_nodes_own_but_no_pod(steered, pod, matches_of):
    agent = pod("cni", 2_000_001_000, 100)

    made = steered(agent)

    blocks = matches_of(made, "system")
    assert blocks[:2] == [[{"HintEquals": 1}], [{"IsKthread": True}]]
    assert [{"CgroupPrefix": "system.slice/kubelet.service/"}] in blocks
    assert [{"PcommPrefix": "kubelet"}, {"UIDEquals": 0}, {"CgroupPrefix": "/"}] in blocks
    assert agent.uid not in render_engine(made)
    assert made.layer_named("system").members == ("default/cni",)


@pytest.mark.parametrize("names", [(), tuple(f"process-{n}" for n in range(60))])
def test_the_system_layer_keeps_to_the_engines_blocks_with_a_hint_too(steered, names, codes):
    settings = Settings(plan=PlanSettings(system_processes=names))

    made = steered(settings=settings)

    assert len(made.layer_named("system").matches) <= 32
    assert (("folded", "system") in codes(made)) is bool(names)


def test_pods_of_the_same_sizes_make_the_same_bytes(steered, pod, mysql, with_image):
    def made(name):
        database = with_image(pod(f"db-{name}", CRITICAL, 1500, cgroups=(f"{name}/",)), "mysql:8")
        return steered(database, pod(f"web-{name}", HIGH, 2000), profiles=[mysql])

    assert made("a") != made("b")
    assert render_engine(made("a")) == render_engine(made("b"))


@pytest.mark.parametrize("cores", [1, 2, 4, 64])
def test_the_check_and_the_engine_itself_take_the_plan(
    steered, pod, mysql, with_image, offline_engine, cores
):
    database = with_image(pod("db", CRITICAL, 1500), "mysql:8")

    made = steered(database, pod("web", HIGH, 100), profiles=[mysql], cores=cores)

    text = render_engine(made)
    assert check(text, capabilities_of(None), arguments=[HINT_MAP], cpus=cores * 2) == ()
    taken, words = verify_offline(offline_engine, text, arguments=[HINT_MAP])
    assert taken, words


def test_the_engine_refuses_open_as_the_last_layer_so_one_follows_it(steered, pod, offline_engine):
    lines = render_engine(steered(pod("a", HIGH, 100))).splitlines()
    text = "\n".join([*lines[:-3], lines[-3].removesuffix(","), "]"])

    taken, words = verify_offline(offline_engine, text, arguments=[HINT_MAP])

    assert not taken
    assert "must have an empty match" in words


def test_groups_that_only_steering_can_tell_get_their_layers(
    steered, pod, sighted, with_image, codes
):
    made = steered(with_image(pod("a", HIGH, 2000), "web:1"), profiles=[sighted])

    assert made.layer_named("web.busy.high").kind is LayerKind.CONFINED
    assert made.layer_named("web.io.high") is None
    assert made.layer_named("high").slice_us == 1_000
    assert "group_needs_steering" not in {code for code, _ in codes(made)}


@pytest.mark.parametrize(("treatment", "nice"), [("boost", -5), ("latency", -10), ("normal", 0)])
def test_treatments_within_a_tiers_layer_are_nice_values(
    steered, pod, profile, group, treatment, nice
):
    web = profile(
        "web", group("hot", "hot", treatment=treatment), group("gc", "g", treatment="yield")
    )
    asked = pod("a", HIGH, 100, annotations={"temper.codes/workload-profile": "web"})

    made = steered(asked, profiles=[web])

    (place,) = [each for each in made.steering if each.pod]
    assert [(rule.layer, rule.nice) for rule in place.rules] == [
        ("high", nice),
        ("open", 0),
        ("high", 0),
    ]
    assert "folded" not in {note.code for note in made.notes}


def test_in_open_no_thread_gets_a_nice_value(steered, pod, profile, group):
    web = profile("web", group("hot", "hot", treatment="boost"))
    asked = pod("a", LOW, 100, annotations={"temper.codes/workload-profile": "web"})

    made = steered(asked, profiles=[web])

    assert {rule.nice for place in made.steering for rule in place.rules} == {0}


def test_a_group_behind_names_that_take_all_its_threads_has_no_layer(
    steered, pod, profile, group, codes
):
    shadow = ThreadMatch(comm_prefix="io_a", title_pattern="x")
    web = profile(
        "web", group("io", "io", treatment="boost"), ThreadGroup("a", (shadow,), Treatment.LATENCY)
    )
    asked = pod("a", HIGH, 100, annotations={"temper.codes/workload-profile": "web"})

    made = steered(asked, profiles=[web])

    assert made.layer_named("web.a.high") is None
    assert ("folded", "web.a.high") in codes(made)


def test_threads_that_only_may_be_taken_by_a_group_still_count_in_their_tier(
    steered, pod, profile, sizes
):
    web = profile("web", ThreadGroup("gc", (ThreadMatch(title_pattern="gc"),), Treatment.YIELD))
    asked = pod("a", HIGH, 4000, annotations={"temper.codes/workload-profile": "web"})

    made = steered(asked, profiles=[web])

    assert sizes(made)["high"][0] == 4
    assert made.layer_named("high").members == ("default/a",)


def test_no_number_of_pods_or_names_folds_a_group(steered, pod, profile, group, with_image, codes):
    names = [f"n{number:02}" for number in range(40)]
    web = profile(
        "web", group("many", *names, treatment="exclusive", cpu_fraction=0.5), group("gc", "gc")
    )
    crowd = [with_image(pod(f"web-{n}", HIGH, 10), "web:1") for n in range(60)]

    made = steered(*crowd, profiles=[web], cores=16)

    assert made.layer_named("web.many.high").exclusive
    assert ("folded", "web.many.high") not in codes(made)


def test_one_of_the_engines_layers_is_kept_for_its_last(
    steered, pod, profile, group, with_image, codes
):
    profiles = [profile(f"p{n:02}", group("hot", "hot", treatment="exclusive")) for n in range(20)]
    pods = [with_image(pod(f"web-{n:02}", HIGH, 10), f"p{n:02}:1") for n in range(20)]

    made = steered(*pods, profiles=profiles, cores=64)

    assert len(made.layers) == 15
    assert made.layer_named("p11.hot.high")
    assert ("folded", "p12.hot.high") in codes(made)


@pytest.mark.parametrize("granted", [(), (Tier.HIGH,)])
def test_headroom_ends_with_the_last_core(granted):
    plan_round = Round((), Capacity(1, 8, 1), Tiers(), Spare(10**15, 1))
    grants = {tier.value: CoreGrant.fixed(LayerKind.GROUPED, tier, 1, "") for tier in granted}
    plan_round.grants = grants

    plan_round.grow(granted)

    assert [grant.most for grant in grants.values()] == [8] * len(granted)


def test_tiers_without_a_pod_stand_by_and_hold_no_core(steered, sizes, sized):
    made = steered(settings=sized(0))

    assert sizes(made) == {"critical": (0, 2), "high": (0, 2), "normal": (0, 2), "system": (2, 2)}
    assert "holds no core" in made.layer_named("critical").reason


@pytest.mark.parametrize(
    ("cores", "names"),
    [
        (1, set()),
        (2, {"system"}),
        (3, {"system", "critical"}),
        (4, {"system", "critical", "high"}),
        (5, {"system", "critical", "high", "normal"}),
    ],
)
def test_tiers_stand_by_as_far_as_cores_are_to_spare(steered, sizes, cores, names):
    assert sizes(steered(cores=cores)).keys() == names


@pytest.mark.parametrize("cores", [2, 3])
def test_an_absent_tier_takes_no_core_from_one_that_has_pods(steered, pod, sizes, cores):
    made = steered(pod("a", NORMAL, 100), cores=cores, threads_per_core=1)

    assert made.layer_named("normal").cpus_max == 1
    assert not {"critical", "high"} & sizes(made).keys()


def test_what_the_pods_request_goes_before_tiers_that_stand_by(steered, pod, sizes, sized):
    made = steered(pod("a", NORMAL, 6000), cores=8, threads_per_core=1, settings=sized(1))

    assert sizes(made) == {"normal": (0, 6), "system": (1, 1)}


def test_an_exclusive_group_goes_before_tiers_that_stand_by(steered, pod, profile, group, sizes):
    web = profile("web", group("hot", "hot", treatment="exclusive"))
    asked = pod("a", HIGH, 100, annotations={"temper.codes/workload-profile": "web"})

    made = steered(asked, profiles=[web], cores=4)

    assert sizes(made).keys() == {"web.hot.high", "high", "system"}


def test_a_latency_group_stays_behind_its_tiers_fence_and_shortens_its_slices(
    steered, pod, profile, group, codes
):
    web = profile("web", group("hot", "hot", treatment="latency"))
    asked = pod("a", CRITICAL, 100, annotations={"temper.codes/workload-profile": "web"})
    alone = steered(pod("a", CRITICAL, 100)).layer_named("critical")

    made = steered(asked, profiles=[web])

    assert made.layer_named("web.hot.critical") is None
    shortened = made.layer_named("critical")
    assert (alone.slice_us, shortened.slice_us) == (5_000, 1_000)
    assert attrs.evolve(shortened, slice_us=alone.slice_us).protected == alone.protected
    assert shortened.kind is alone.kind is LayerKind.CONFINED
    assert ("folded", "web.hot.critical") not in codes(made)


def test_the_shortest_slice_that_a_latency_group_asks_for_counts(steered, pod, profile, group):
    web = profile(
        "web",
        group("hot", "hot", treatment="latency", slice_us=700),
        group("warm", "warm", treatment="latency", slice_us=2_000),
    )
    asked = pod("a", HIGH, 100, annotations={"temper.codes/workload-profile": "web"})

    assert steered(asked, profiles=[web]).layer_named("high").slice_us == 700


def test_a_tier_may_grow_beyond_its_requests_but_keeps_no_more(steered, pod, sizes, sized):
    busy = pod("a", CRITICAL, 2000, 2000)

    made = steered(busy, settings=sized(2), cores=16)
    static = steered(busy, settings=sized(0), cores=16)

    assert sizes(made)["critical"] == (2, 6)
    assert sizes(static)["critical"] == (2, 2)


def test_headroom_goes_before_limits_but_not_before_requests(steered, pod, sizes, sized):
    pods = [pod("a", CRITICAL, 2000, 2000), pod("b", HIGH, 2000, 16_000)]

    made = steered(*pods, settings=sized(1), cores=9)

    assert sizes(made) == {
        "critical": (2, 4),
        "high": (2, 6),
        "normal": (0, 4),
        "system": (2, 2),
    }


def test_a_tier_that_shares_open_by_the_settings_does_not_stand_by(steered, sizes, sized):
    settings = sized(0, tiers=Tiers(high=TierSettings(LayerKind.OPEN)))

    assert "high" not in sizes(steered(settings=settings))


def test_a_name_keeps_its_hint_from_plan_to_plan(steered, pod, mysql, with_image):
    database = with_image(pod("db", CRITICAL, 1500), "mysql:8")
    first = steered(database, profiles=[mysql])
    without = steered(hints=first.hints)
    other = steered(
        with_image(pod("db", HIGH, 1500), "mysql:8"),
        profiles=[mysql],
        hints={**first.hints, **without.hints},
    )

    assert other.hints["mysql.connections.high"] == FIRST_GROUP_HINT + 1
    assert steered(database, profiles=[mysql], hints=other.hints | first.hints).hints == first.hints


def test_the_engine_in_force_knows_the_hints_that_it_was_given(steered, pod, mysql, with_image):
    database = with_image(pod("db", CRITICAL, 1500), "mysql:8")
    known = {**FIXED_HINTS, "mysql.connections.critical": 77}
    first = steered(database, profiles=[mysql], hints=known)

    after = steered(database, profiles=[mysql], in_force=first.layers)

    assert after.hints == first.hints
    assert after.hints["mysql.connections.critical"] == 77


def test_a_held_plan_is_the_configuration_in_force_byte_by_byte(
    steered, pod, mysql, with_image, sized
):
    first = steered(with_image(pod("db", CRITICAL, 1500), "mysql:8"), profiles=[mysql])
    changed = sized(0, tiers=Tiers(critical=attrs.evolve(Tiers().critical, slice_us=700)))

    held = steered(
        *[pod(f"web-{n}", CRITICAL, 9000) for n in range(3)],
        pod("x", None, 10),
        in_force=first.layers,
        hold=True,
        settings=changed,
    )

    assert render_engine(held) == render_engine(first)
    assert held.layer_named("critical").members == (
        "default/web-0",
        "default/web-1",
        "default/web-2",
    )
    assert held.layer_named("mysql.connections.critical").group_members == ()
    assert "3 pods request 27000m" in held.layer_named("critical").reason


def test_a_group_without_a_layer_in_force_waits_in_its_tiers(
    steered, pod, mysql, with_image, codes
):
    first = steered(pod("db", CRITICAL, 1500))
    database = with_image(pod("db", CRITICAL, 1500), "mysql:8")

    held = steered(database, profiles=[mysql], in_force=first.layers, hold=True)

    assert ("waiting", "mysql.connections.critical") in codes(held)
    assert held.layer_named("critical").group_members == ("default/db",)
    assert held.hints == first.hints


def test_a_tier_without_a_layer_in_force_waits_in_open(steered, pod, codes):
    first = steered(cores=2)

    held = steered(pod("a", HIGH, 100), cores=2, in_force=first.layers, hold=True)

    assert [layer.name for layer in held.layers] == ["system", "open"]
    assert held.layer_named("open").members == ("default/a",)
    assert ("waiting", "high") in codes(held)


def test_the_document_says_that_a_plan_is_steered_and_by_which_hints(steered, plan, pod):
    document = plan_document(steered(pod("a", HIGH, 100)))
    static = plan_document(plan(pod("a", HIGH, 100)))

    assert document["steered"] is True
    assert {layer["name"]: layer["hint"] for layer in document["layers"]}["high"] == 4
    assert static["steered"] is False
    assert {layer["hint"] for layer in static["layers"]} == {None}


def test_a_static_plan_is_the_one_that_it_always_was(plan, pod, mysql, with_image):
    database = with_image(pod("db", CRITICAL, 1500, 1500), "mysql:8")
    crowd = [pod(f"web-{n:02}", None, 50) for n in range(40)]

    made = plan(database, pod("api", HIGH, 500), pod("batch"), *crowd, profiles=[mysql], cores=16)

    golden = Path(__file__).with_name("static_plan.json")
    assert render_engine(made) == golden.read_text(encoding="utf-8")
