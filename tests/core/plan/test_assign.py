import attrs
import pytest

from temper_core.plan import ProfileCatalogue, assign
from temper_core.records.pods import Origin, QosClass
from temper_core.records.tiers import Tier
from temper_core.settings import Settings
from temper_core.settings.tiers import PriorityMapping
from temper_core.testing import make_machine

THRESHOLDS = [
    (2_000_000_000, "critical", True),
    (1_999_999_999, "critical", False),
    (1_000_000, "critical", False),
    (999_999, "high", False),
    (100_000, "high", False),
    (99_999, "normal", False),
    (1, "normal", False),
    (-1, "low", False),
    (-100, "low", False),
    (-101, "background", False),
]


def assigned(pod, settings=None):
    found = assign([pod], ProfileCatalogue(), make_machine(), settings or Settings())
    return found[0]


@pytest.mark.parametrize(("priority", "tier", "is_system"), THRESHOLDS)
def test_a_priority_decides_the_tier_at_every_threshold_and_one_below(
    pod, priority, tier, is_system
):
    found = assigned(pod("a", priority))

    assert (found.tier, found.is_system) == (tier, is_system)
    assert f"priority {priority}" in found.reason


@pytest.mark.parametrize("threshold", ["critical", "high", "normal", "low"])
def test_a_threshold_can_be_moved(pod, threshold):
    mapping = attrs.evolve(
        PriorityMapping(), **{threshold: getattr(PriorityMapping(), threshold) + 7}
    )
    settings = Settings(priority_mapping=mapping)

    at = assigned(pod("a", getattr(mapping, threshold)), settings)
    below = assigned(pod("a", getattr(mapping, threshold) - 1), settings)

    assert at.tier == threshold
    assert below.tier.rank == at.tier.rank + 1


@pytest.mark.parametrize("priority", [None, 0])
@pytest.mark.parametrize(
    ("qos", "tier"),
    [
        (QosClass.GUARANTEED, Tier.NORMAL),
        (QosClass.BURSTABLE, Tier.NORMAL),
        (QosClass.BEST_EFFORT, Tier.BACKGROUND),
    ],
)
def test_without_a_class_the_qos_class_decides(pod, priority, qos, tier):
    found = assigned(pod("a", priority, qos_class=qos))

    assert found.tier is tier
    assert qos.value in found.reason


def test_a_class_of_value_0_is_normal_whatever_the_qos_class(pod):
    found = assigned(pod("a", 0, priority_class="temper-normal"))

    assert found.tier is Tier.NORMAL
    assert found.reason == "priority 0 (temper-normal) >= normal threshold 0"


def test_a_rule_wins_over_the_priority(pod):
    found = assigned(pod("a", 2_000_000_000, tier=Tier.LOW, tier_rule="workload 'a' says low"))

    assert (found.tier, found.reason, found.is_system) == (Tier.LOW, "workload 'a' says low", False)


def test_a_pod_in_a_cgroup_that_the_system_layer_keeps_is_a_system_pod(pod):
    found = assigned(pod("docker", cgroups=("system.slice/docker.service/",)))

    assert found.is_system
    assert "system_cgroups" in found.reason


def test_a_pod_that_no_kubelet_accepts_here_counts_as_nothing(pod):
    found = assigned(pod("huge", 1_000_000, 1_000_000))

    assert (found.pod.cpu_request_millis, found.pod.cpu_limit_millis) == (0, 0)
    assert found.too_large == (
        "requests 1000000m, and the node has 8 CPUs: no kubelet accepts it here, "
        "so it counts as nothing"
    )
    assert found.reason.endswith(found.too_large)
    assert found.profile_reason == "not looked for, as no kubelet accepts the pod here"


@pytest.mark.parametrize(
    "changes",
    [
        {"request": 8000},
        {"request": 8001, "cgroups": ("kubepods.slice/a/",)},
        {"request": 8001, "origin": Origin.UNIT},
    ],
)
def test_what_fits_the_node_or_runs_counts_in_full(pod, changes):
    found = assigned(pod("large", 1_000_000, **changes))

    assert found.pod.cpu_request_millis == changes["request"]
    assert not found.too_large


def test_pods_are_sorted_by_namespace_name_and_uid(pod):
    pods = [pod("b"), pod("a", uid="2"), pod("a", uid="1"), pod("c", namespace="apps")]

    found = assign(pods, ProfileCatalogue(), make_machine(), Settings())

    assert [(each.pod.key, each.pod.uid) for each in found] == [
        ("apps/c", "c-0000-4000"),
        ("default/a", "1"),
        ("default/a", "2"),
        ("default/b", "b-0000-4000"),
    ]
