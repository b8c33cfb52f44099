"""Watts by tier: a share of CPU time, whose parts add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import PodSample, Tier
from temper_core.testing import make_snapshot, make_thread
from temper_plugin_power.node.tier_shares import tier_watts


def used(tier, cpus):
    return PodSample(f"ns-{tier}", "pod", "uid", Tier(tier), threads=1, cpu_used=cpus)


def test_a_tier_has_the_share_of_its_cpu_time():
    threads = (make_thread("kubelet", cpu_used=1.0), make_thread("web", pod="web", cpu_used=9.0))
    pods = (used("critical", 2.0), used("critical", 1.0), used("low", 4.0))

    watts = tier_watts(80.0, make_snapshot(*threads, pods=pods))

    shares = {"critical": 30.0, "high": 0.0, "normal": 0.0, "low": 40.0, "background": 0.0}
    assert watts == pytest.approx({**shares, "outside-pods": 10.0})


def test_an_idle_machine_has_all_outside_of_pods():
    assert tier_watts(50.0, make_snapshot())["outside-pods"] == 50.0


@given(
    st.floats(0, 1000),
    st.lists(st.tuples(st.sampled_from(list(Tier)), st.floats(0, 512)), max_size=10),
)
def test_the_parts_add_up_to_the_whole(watts, pods):
    snapshot = make_snapshot(pods=tuple(used(tier, cpus) for tier, cpus in pods))

    assert sum(tier_watts(watts, snapshot).values()) == pytest.approx(watts)
