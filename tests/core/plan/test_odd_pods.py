"""Pods that no API server would admit: the plan stays one that the engine takes."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.engine.capabilities import capabilities_of
from temper_core.engine.configuration_check import check
from temper_core.plan import ProfileCatalogue, decide, explain, plan_document, render_engine
from temper_core.records.pods import Container, Origin, Pod
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings import Settings
from temper_core.settings.models import PodSettings
from temper_core.settings.tiers import PlanSettings, Tiers, TierSettings
from temper_core.testing import make_machine

ODD = [
    "",
    "/",
    "a b",
    "ü\n",
    "\0",
    "\udcff",
    "x" * 253,
    "x" * 4090,
    "x" * 4094,
    "x" * 4095,
    "é" * 2047,
    "a/" * 2047,
    "sys/fs/cgroup/a",
    "/sys/fs/cgroup",
]
texts = st.sampled_from(ODD) | st.text(alphabet="ab.*+?()[]{}|^$\\-'\"/ \n#&~é", max_size=12)
containers = st.builds(
    Container, st.just("c"), runtime_id=texts, processes=st.lists(texts, max_size=3).map(tuple)
)
pods = st.builds(
    Pod,
    uid=st.sampled_from(["", "u", "u.*"]) | texts,
    namespace=st.sampled_from(["", "n"]),
    name=st.sampled_from(["a", "b"]) | texts,
    priority=st.sampled_from([None, -500, 5, 100_000, 1_000_000, 2_000_000_000]),
    containers=st.lists(containers, max_size=2).map(tuple),
    cpu_request_millis=st.sampled_from([0, 1, 3000]),
    cgroups=st.lists(texts.map(lambda text: f"{text}/"), max_size=2).map(tuple),
    origin=st.sampled_from(Origin),
    tier=st.none() | st.sampled_from(Tier),
)
tiers = st.builds(
    TierSettings,
    kind=st.sampled_from(LayerKind),
    protected=st.booleans(),
    preempt=st.booleans(),
    util_range=st.sampled_from([(0.5, 0.8), (0.0, 0.001), (0.9, 5.0)]),
)
all_settings = st.builds(
    lambda tiers, driver, reserve: Settings(
        tiers=tiers,
        pods=PodSettings(cgroup_driver=driver),
        plan=PlanSettings(reserve_cores=reserve),
    ),
    st.just(Tiers()) | st.builds(Tiers, tiers, tiers, tiers, tiers, tiers),
    st.sampled_from(["auto", "cgroupfs"]),
    st.integers(1, 3),
)


def manifold(few, times):
    """Repeat *few* pods under uids of their own, so that a layer needs an expression for them."""
    return few + [attrs.evolve(pod, uid=f"{pod.uid}{n}") for pod in few for n in range(times)]


@given(
    st.lists(pods, max_size=5),
    st.sampled_from([0, 0, 40]),
    st.sampled_from([1, 2, 4, 64]),
    all_settings,
    st.randoms(),
)
def test_whatever_the_pods_and_tiers_the_plan_is_sound_and_stable(
    few, times, cores, given_settings, chance
):
    listed = manifold(few, times)
    machine = make_machine(cores)

    plan = decide(listed, ProfileCatalogue(), machine, given_settings)
    again = decide(chance.sample(listed, len(listed)), ProfileCatalogue(), machine, given_settings)

    assert check(render_engine(plan), capabilities_of(None), cpus=len(machine.cpus)) == ()
    assert render_engine(again) == render_engine(plan)
    assert plan_document(again) == plan_document(plan)
    own = [layer for layer in plan.layers if layer.kind is not LayerKind.OPEN]
    assert all(layer.cpus_max >= 2 for layer in own)
    assert sum(layer.cpus_max for layer in own) <= 2 * max(
        0, cores - given_settings.plan.reserve_cores
    )


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("origin", Origin)
def test_an_odd_pod_is_explained(plan, pod, odd, origin):
    containers = (Container("c", processes=(odd,)),)
    made = plan(pod("a", uid=odd, origin=origin, tier=Tier.HIGH, containers=containers))

    assert explain(made, Settings(), "default/a").places


def test_pods_of_one_name_and_uid_make_one_plan_in_any_order(plan, pod):
    alike = [
        pod("a", 100_000, 1, annotations={"x": "1", "y": "2"}),
        pod("a", 1_000_000, 2, cgroups=("a.slice/",)),
        pod("a", 100_000, 3),
    ]

    forward, backward = plan(*alike), plan(*reversed(alike))

    assert plan_document(forward) == plan_document(backward)
    assert render_engine(forward) == render_engine(backward)


def test_a_uid_that_leaves_no_room_for_what_is_around_it_cannot_be_matched(plan, pod, codes):
    made = plan(pod("a", 100_000, uid="x" * 4090))

    assert made.layer_by_pod["default/a"] == "open"
    assert ("folded", "default/a") in codes(made)


def test_a_path_that_repeats_the_mount_cannot_be_matched(plan, pod, codes):
    made = plan(pod("a", 100_000, cgroups=("/sys/fs/cgroup/a.slice/",)))

    assert made.layer_by_pod["default/a"] == "open"
    assert ("folded", "default/a") in codes(made)
