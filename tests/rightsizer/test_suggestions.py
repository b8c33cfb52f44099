"""Suggestions for containers with hot threads, and the workload profile of a report."""

import pytest
from attrs import asdict, evolve
from hypothesis import given
from hypothesis import strategies as st

from temper_core import (
    Assignment,
    InputError,
    Origin,
    Tier,
    Treatment,
    WorkloadProfile,
    parse_profile,
)
from temper_core.records.profiles import LoadedProfile
from temper_core.testing import make_pod
from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.advice.suggestions import (
    PodTreatment,
    SuggestionKind,
    suggestions,
)
from temper_plugin_rightsizer.commands.formats import as_csv, as_markdown, as_table
from temper_plugin_rightsizer.commands.page import as_html
from temper_plugin_rightsizer.commands.profile import as_profile
from temper_plugin_rightsizer.commands.pull_request import as_pull_request
from temper_plugin_rightsizer.node.containers import treatment_of
from tests.rightsizer.shapes import over_hours, window

HOT = (("rpc-1", 0.95), ("rpc-2", 0.9))


def advice_on(*threads, request=500):
    demand = over_hours(lambda _: window(*threads, idle=0.2), hours=1)
    return advise(demand, Resources(cpu_request_millis=request))


def kinds(advice, treatment):
    return [each.kind for each in suggestions(advice, treatment)]


@pytest.mark.parametrize(
    ("treatment", "expected"),
    [
        (PodTreatment("critical", "web", has_exclusive_group=True), []),
        (PodTreatment("high", "web", has_exclusive_group=True), []),
        (PodTreatment("high", "web"), ["profile"]),
        (PodTreatment("high"), ["profile"]),
        (PodTreatment("normal", "web", has_exclusive_group=True), ["tier"]),
        (PodTreatment("background"), ["tier", "profile"]),
        (PodTreatment(), []),
    ],
)
def test_a_hot_thread_needs_a_tier_that_fences_and_an_exclusive_group(treatment, expected):
    assert kinds(advice_on(*HOT), treatment) == expected


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (Origin.KUBERNETES, "give the pod the PriorityClass of high"),
        (Origin.WORKLOAD, 'set tier = "high" in its [[workloads]] rule'),
        (Origin.UNIT, 'give it a [[workloads]] rule with tier = "high"'),
    ],
)
def test_what_raises_the_tier_depends_on_the_origin(origin, said):
    assignment = Assignment(evolve(make_pod(), origin=origin), Tier.NORMAL, "a rule")

    (tier, _) = suggestions(advice_on(*HOT), treatment_of(assignment))

    assert tier.reason.endswith(said)


def test_without_a_hot_thread_nothing_is_suggested():
    assert kinds(advice_on(("a", 0.5), ("b", 0.5)), PodTreatment("background")) == []


def test_the_reason_names_threads_tier_and_profile():
    tier, profile = suggestions(advice_on(*HOT), PodTreatment("normal", "web"))

    assert (tier.kind, tier.wanted) == (SuggestionKind.TIER, Tier.HIGH)
    assert "the tier is normal: if users wait for rpc-#" in tier.reason
    assert "the profile web has no exclusive thread group for rpc-#" in profile.reason


def loaded(treatment):
    written = f"""
schema_version = 1
id = "web"
description = "for a test"
[[thread_groups]]
name = "hot"
match = [{{ comm_prefix = "rpc-" }}]
treatment = "{treatment}"
"""
    return LoadedProfile(parse_profile(written, "a test"), "a test")


@pytest.mark.parametrize("treatment", [Treatment.EXCLUSIVE, Treatment.LATENCY])
def test_a_pod_is_treated_as_its_assignment_says(treatment):
    assignment = Assignment(make_pod("web"), Tier.HIGH, "priority", loaded(treatment))

    is_exclusive = treatment is Treatment.EXCLUSIVE
    assert treatment_of(assignment) == PodTreatment("high", "web", is_exclusive)


def test_a_system_pod_has_no_tier_to_change():
    assignment = Assignment(make_pod("dns"), Tier.CRITICAL, "priority", is_system=True)

    assert treatment_of(assignment) == PodTreatment()


def row(name="web", threads=HOT, **more):
    advice = advice_on(*threads)
    return {
        "namespace": "shop",
        "pod": "",
        "owner": f"Deployment/{name}",
        "container": "app",
        "replicas": 2,
        **asdict(advice),
        "hot_threads": list(advice.hot_threads),
        "reasons": list(advice.reasons),
        "suggestions": [asdict(each) for each in suggestions(advice, PodTreatment("normal"))],
        **more,
    }


def test_every_form_of_the_report_has_the_suggestions():
    document = {"containers": [row()]}

    for shown in (
        as_table(document, explains=True),
        as_csv(document),
        as_markdown(document),
        as_pull_request(document),
        as_html(document),
    ):
        assert "suggestion: only the tiers critical and high" in shown.replace("\\", "")


def profile_of(*containers) -> WorkloadProfile:
    return parse_profile(as_profile({"containers": list(containers)}), "a report")


def test_the_profile_gives_the_hot_threads_as_many_cores_as_are_hot():
    side = row(threads=(("log", 0.3),), container="side")

    profile = profile_of(row(), side)

    hot, rest = profile.thread_groups
    assert (profile.id, hot.treatment, rest.treatment) == ("shop-web", "exclusive", "normal")
    assert [match.comm_prefix for match in hot.match] == ["rpc-"]
    request = sum(each["recommended"]["cpu_request_millis"] for each in (row(), side))
    assert 1 < request / 1000 * float(hot.cpu_fraction) <= 2


def test_a_name_that_begins_with_a_number_is_matched_by_a_pattern():
    (match,) = profile_of(row(threads=(("3-io.9", 0.95),))).thread_groups[0].match

    assert match.comm_pattern == r"^[0-9]+\-io\.[0-9]+$"


@pytest.mark.parametrize(
    ("containers", "told"),
    [
        ([], "no container of the report has hot threads"),
        ([row(threads=(("a", 0.5),))], "no container of the report has hot threads"),
        ([row(), row("api")], "several have hot threads: shop/api, shop/web"),
    ],
)
def test_a_report_that_makes_no_profile_is_refused_with_the_reason(containers, told):
    with pytest.raises(InputError, match=told):
        as_profile({"containers": containers})


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=15), max_size=3), st.integers())
def test_any_name_makes_a_valid_profile_or_one_line(name, threads, cores):
    odd = row(owner=f"Deployment/{name}", hot_threads=threads, hot_cores=cores)
    told = written = ""
    try:
        written = as_profile({"containers": [odd]})
    except InputError as error:
        told = str(error)

    assert "\n" not in told
    assert told or parse_profile(written, "a report")
