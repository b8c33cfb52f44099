"""What else decides on requests: autoscalers, bounds and quotas of a namespace, kinds of pods."""

import pytest
from attrs import asdict, evolve
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.bounds import joined
from temper_plugin_rightsizer.advice.pods import with_pod_bounds
from temper_plugin_rightsizer.advice.quotas import Quotas, with_quotas
from temper_plugin_rightsizer.advice.records import KEEP, Resources
from temper_plugin_rightsizer.advice.surroundings import (
    Autoscaler,
    Bounds,
    ContainerKind,
    Range,
    Surroundings,
    consider,
)
from temper_plugin_rightsizer.demand.interval import Counts
from tests.rightsizer.shapes import over_hours, window

MIB = 1024 * 1024
SIZED = Resources(500, None, 256 * MIB, 512 * MIB)
GUARANTEED = Resources(500, 500, 256 * MIB, 256 * MIB)


def considered(around, current=SIZED, used=0.8, memory_mib=100):
    demand = over_hours(lambda _: window(("a", used / 2), ("b", used / 2)), hours=1)
    demand.counts = Counts(peak_bytes=memory_mib * MIB)
    return consider(advise(demand, current), around)


def reasons_with(advice, text):
    return [reason for reason in advice.reasons if text in reason]


def test_the_request_that_an_autoscaler_scales_by_stays_and_the_target_is_told():
    around = Surroundings(autoscalers=(Autoscaler("the HPA web", cpu_percent=60),))

    advice = considered(around)

    assert advice.recommended.cpu_request_millis == 500
    assert advice.recommended.memory_request_bytes == 120 * MIB
    (told,) = reasons_with(advice, "the HPA web aims at 60 % of the CPU request")
    assert "the request stays" in told
    # 60 % of 0.5 cores are 0.3 cores, which are 29 % of 1.03.
    assert reasons_with(advice, "needs a target of 29 %")


def test_an_autoscaler_by_memory_keeps_the_memory_request():
    around = Surroundings(autoscalers=(Autoscaler("the HPA web", memory_percent=50),))

    advice = considered(around)

    assert advice.recommended.memory_request_bytes == 256 * MIB
    assert advice.recommended.cpu_request_millis > 1000
    assert reasons_with(advice, "50 % of the memory request: the request stays")
    assert reasons_with(advice, "a target of 107 %, which is no useful one")


def test_an_autoscaler_without_a_request_cannot_scale():
    around = Surroundings(autoscalers=(Autoscaler("the HPA web", cpu_percent=60),))

    advice = considered(around, Resources())

    assert advice.recommended.cpu_request_millis > 1000
    assert reasons_with(advice, "there is none: it cannot scale")


def test_an_autoscaler_by_other_metrics_changes_nothing():
    around = Surroundings(autoscalers=(Autoscaler("the HPA web"),))

    assert considered(around).recommended == considered(Surroundings()).recommended
    assert reasons_with(considered(around), "does not scale by use of a request")


def test_a_limit_range_bounds_the_advice():
    low = Surroundings(bounds=Bounds(Range(most=700), Range(least=200 * MIB)))

    advice = considered(low)

    assert advice.recommended.cpu_request_millis == 700
    assert advice.recommended.memory_request_bytes == 200 * MIB
    assert reasons_with(advice, "at most 0.7 in place of 1.0")
    assert reasons_with(advice, "at least 200Mi in place of 120Mi: the memory request is 200Mi")


def test_an_advice_that_a_bound_turns_into_the_present_state_is_to_keep_it():
    around = Surroundings(bounds=Bounds(Range(500, 500), Range(least=256 * MIB)))

    advice = considered(around)

    assert advice.keeps
    assert advice.reasons[-1] == KEEP


@given(
    st.integers(1, 5000),
    st.integers(0, 5000),
    st.integers(1, 4096),
    st.integers(0, 4096),
    st.floats(0.01, 4),
)
def test_no_advice_is_out_of_the_bounds(least, more, least_mib, more_mib, used):
    cpu = Range(least, least + more)
    memory = Range(least_mib * MIB, (least_mib + more_mib) * MIB)

    wanted = considered(Surroundings(bounds=Bounds(cpu, memory)), used=used).recommended

    assert cpu.least <= wanted.cpu_request_millis <= cpu.most
    assert memory.least <= wanted.memory_request_bytes <= wanted.memory_limit_bytes <= memory.most


def test_of_several_bounds_the_narrowest_holds():
    first = Bounds(Range(100, 900, 4.0))
    both = joined(first, Bounds(Range(200, None, 1.5), Range(most=MIB)))

    assert both == Bounds(Range(200, 900, 1.5), Range(most=MIB))


@given(st.floats(1.0, 16.0), st.floats(0.01, 4.0), st.integers(10, 16_000), st.integers(1, 8192))
def test_no_limit_is_too_many_times_the_request(ratio, used, limit, limit_mib):
    now = Resources(10, limit, MIB, limit_mib * MIB)
    around = Surroundings(bounds=Bounds(Range(ratio=ratio), Range(ratio=ratio)))

    wanted = considered(around, now, used).recommended

    assert wanted.cpu_limit_millis <= ratio * wanted.cpu_request_millis * (1 + 1e-9)
    assert wanted.memory_limit_bytes <= ratio * wanted.memory_request_bytes * (1 + 1e-9)
    assert wanted.cpu_request_millis <= wanted.cpu_limit_millis


def test_a_ratio_raises_the_request_and_says_so():
    around = Surroundings(bounds=Bounds(Range(ratio=2.0)))

    advice = considered(around, Resources(2000, 4000), used=0.4)

    assert advice.recommended.cpu_limit_millis == 4000
    assert advice.recommended.cpu_request_millis == 2000
    assert reasons_with(advice, "at most 2 x the request: with the limit 4 the CPU request is 2")


def in_pod(container, current, recommended, kind=ContainerKind.APP, owner="Deployment/web"):
    return {
        "namespace": "shop",
        "owner": owner,
        "pod": "",
        "container": container,
        "container_kind": kind,
        "current": asdict(current),
        "recommended": asdict(recommended),
        "keeps": False,
        "reasons": ["a reason"],
    }


POD_BOUNDS = {"shop": Bounds(Range(500, 4000, 4.0), Range(most=1024 * MIB))}


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (Resources(200), Resources(200), "the LimitRange wants 0.5 for a pod, and 0.4 is advised"),
        (Resources(3000), Resources(1500), "allows 4 for a pod, and 4.5 is advised"),
        (Resources(500, 2600), Resources(100), "limits of 4 x the requests of a pod, and 4.33 x"),
    ],
)
def test_a_pod_that_breaks_its_bounds_together_stays_as_it_is(first, second, told):
    now = Resources(1000, 2000)
    rows = with_pod_bounds([in_pod("a", now, first), in_pod("b", now, second)], POD_BOUNDS)

    assert [row["recommended"] for row in rows] == [asdict(now)] * 2
    assert all(row["keeps"] for row in rows)
    assert all(told in row["reasons"][1] and row["reasons"][-1] == KEEP for row in rows)


def test_the_other_resource_still_changes():
    now, wanted = Resources(1000, None, MIB), Resources(300, None, 9 * MIB)

    (row,) = with_pod_bounds([in_pod("a", now, wanted)], POD_BOUNDS)

    assert row["recommended"] == asdict(Resources(1000, None, 9 * MIB))
    assert not row["keeps"]
    assert row["reasons"][-1].endswith("the CPU requests and limits of its pods stay as they are")


def test_pods_that_keep_their_bounds_and_init_containers_are_left_alone():
    now, wanted = Resources(1000, 2000), Resources(600, 2000)
    setup = in_pod("setup", now, Resources(4000), ContainerKind.INIT)
    other = in_pod("app", now, Resources(100), owner="Deployment/other")
    other["namespace"] = "elsewhere"
    rows = [in_pod("app", now, wanted), setup, other]

    assert with_pod_bounds(rows, POD_BOUNDS) == [in_pod("app", now, wanted), setup, other]


def test_an_updater_is_told_and_one_that_only_observes_too():
    updater = Surroundings(updater="the VPA web (mode Recreate)")
    observer = Surroundings(observer="the VPA web (mode Off)")

    assert reasons_with(considered(updater), "the VPA web (mode Recreate) sets the requests")
    assert reasons_with(considered(observer), "the VPA web (mode Off) exists, and sets nothing")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Job", "the advice is for the next one"),
        ("CronJob", "by the time in which its Jobs ran"),
        ("StatefulSet", "restarts its pods one by one"),
        ("Pod", "has no template to change"),
    ],
)
def test_what_a_change_of_a_workload_means_is_told(kind, said):
    assert reasons_with(considered(Surroundings(owner_kind=kind)), said)
    kept = considered(Surroundings(owner_kind=kind), Resources(1050, None, 120 * MIB, 120 * MIB))
    assert kept.keeps
    assert not reasons_with(kept, said)


def test_kinds_of_containers_are_told():
    for kind, said in ((ContainerKind.INIT, "an init container"), (ContainerKind.SIDECAR, "adds")):
        assert reasons_with(considered(Surroundings(kind=kind)), said)


def test_a_resize_in_place_cannot_change_the_qos_class():
    around = Surroundings(resize="without a restart")
    of_guaranteed = evolve(around, is_guaranteed=True)

    assert reasons_with(considered(around), "in-place resize of its pods is possible without a")
    assert reasons_with(considered(of_guaranteed, GUARANTEED, 0.2), "no in-place resize")
    init = evolve(around, kind=ContainerKind.INIT)
    assert not reasons_with(considered(init), "in-place resize")


def row_of(namespace, wanted, current=SIZED, replicas=1):
    return {
        "namespace": namespace,
        "replicas": replicas,
        "current": asdict(current),
        "recommended": asdict(evolve(current, cpu_request_millis=wanted)),
        "reasons": (),
    }


def test_a_quota_that_the_advice_does_not_fit_into_is_told_where_it_adds():
    quotas = Quotas()
    quotas.bound("shop", "cpu_request_millis", "loose", 5000)
    quotas.bound("shop", "cpu_request_millis", "tight", 1200)
    rows = [row_of("shop", 1000, replicas=3), row_of("shop", 400), row_of("other", 9000)]

    added, less, other = with_quotas(rows, quotas)

    (told,) = added["reasons"]
    assert "the quota tight leaves 1.2 of CPU requests" in told
    assert "adds 1.4: it does not fit" in told
    assert less["reasons"] == other["reasons"] == []


def test_advice_that_fits_says_nothing_of_a_quota():
    quotas = Quotas()
    quotas.bound("shop", "cpu_request_millis", "tight", 1500)

    (row,) = with_quotas([row_of("shop", 1000, replicas=3)], quotas)

    assert row["reasons"] == []
