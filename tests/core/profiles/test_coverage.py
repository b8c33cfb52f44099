"""How much of a pod's CPU time its profile knows, judged on snapshots' threads."""

import pytest

from temper_core import parse_profile
from temper_core.observe.profile_coverage import ProfileCoverage
from temper_core.plan import ProfileCatalogue, decide
from temper_core.profiles.covering import takes_by_name
from temper_core.records.pods import Container
from temper_core.records.profiles import LoadedProfile
from temper_core.records.snapshots import PodSample
from temper_core.records.steering import FIXED_HINTS, Steering
from temper_core.records.threads import ThreadIdentity
from temper_core.records.tiers import Tier
from temper_core.settings import Settings
from temper_core.testing import make_machine, make_pod, make_thread

PROFILE = """
id = "db"
fingerprint.images = ["db:*"]
[[thread_groups]]
name = "queries"
match = [{ comm_prefix = "query" }, { comm_pattern = "#[0-9]+$" }]
treatment = "latency"
[[thread_groups]]
name = "rest"
treatment = "yield"
"""
BY_TITLE = PROFILE.replace('comm_prefix = "query"', 'title_pattern = "query"')
BY_PATTERN = PROFILE.replace('{ comm_prefix = "query" }, ', "")
BOTH = PROFILE.replace(
    'comm_prefix = "query" }', 'comm_prefix = "query" }, { title_pattern = "query" }'
)


@pytest.fixture
def planned():
    """Decide for a pod of two containers under a profile of that text, or of one if *alone*."""

    def make(text, *, steered=False, alone=False):
        profile = LoadedProfile(parse_profile(text, "db.toml"), "db.toml")
        containers = (Container("main", "db:1", runtime_id="aa"), Container("side", "x:1"))
        containers = containers[:1] if alone else containers
        pod = make_pod("a", priority=100_000, cpu_request_millis=1000, containers=containers)
        return decide(
            [pod, make_pod("b")],
            ProfileCatalogue((profile,)),
            make_machine(8),
            Settings(),
            steering=Steering(FIXED_HINTS) if steered else None,
        )

    return make


def thread(comm, cpus, **more):
    given = {"namespace": "default", "pod": "a", "container": "main", "process": "db", **more}
    return make_thread(comm=comm, cpu_used=cpus, **given)


def test_it_is_the_share_of_cpu_time_in_threads_that_a_match_takes(planned):
    threads = [thread("query-1", 0.5), thread("io#12", 0.25), thread("other", 0.25)]
    plan = planned(PROFILE, steered=True)

    assert ProfileCoverage().of(plan, threads) == {("default", "a"): 0.75}


def test_on_a_static_node_a_pattern_and_a_title_take_no_thread(planned):
    threads = [thread("query-1", 0.5), thread("io#12", 0.25), thread("other", 0.25)]

    assert ProfileCoverage().of(planned(PROFILE), threads) == {("default", "a"): 0.5}
    assert ProfileCoverage().of(planned(BY_TITLE), threads) == {("default", "a"): 0.0}


def test_a_thread_that_user_space_has_not_decided_yet_is_not_covered(planned):
    young = thread("io#12", 0.5, expected_layer="open", hinted_layer="open")
    decided = thread("io#13", 0.5, expected_layer="db.queries.high", hinted_layer="db.queries.high")
    plan = planned(PROFILE, steered=True)

    assert ProfileCoverage().of(plan, [young, decided]) == {("default", "a"): 0.5}


@pytest.mark.parametrize(
    ("text", "alone", "told"),
    [
        pytest.param(PROFILE, True, {}, id="a prefix may have taken them"),
        pytest.param(BY_PATTERN, True, {("default", "a"): 0.5}, id="nothing reached them"),
        pytest.param(BY_PATTERN, False, {}, id="of another container, perhaps"),
    ],
)
def test_threads_too_short_lived_to_be_seen_are_unknown_or_not_reached(planned, text, alone, told):
    home = "db.queries.high"
    decided = thread("io#1", 0.5, expected_layer=home, hinted_layer=home)
    pod = PodSample("default", "a", "uid", Tier.HIGH, 1, 1.0, short_lived_cpu_used=0.5)
    plan = planned(text, steered=True, alone=alone)

    assert ProfileCoverage().of(plan, [decided], [pod]) == told


def test_threads_of_other_containers_and_pods_do_not_count(planned):
    threads = [
        thread("query-1", 0.5),
        thread("busy", 1.0, container="side"),
        thread("busy", 1.0, pod="b"),
        thread("busy", 1.0, pod="", namespace=""),
    ]

    assert ProfileCoverage().of(planned(PROFILE), threads) == {("default", "a"): 1.0}


def test_a_pod_that_did_nothing_has_none_and_so_has_a_node_without_a_plan(planned):
    assert ProfileCoverage().of(planned(PROFILE), [thread("query", 0.0)]) == {}
    assert ProfileCoverage().of(None, [thread("query", 1.0)]) == {}


@pytest.mark.parametrize(
    ("sent_to", "told"),
    [
        ("high", {("default", "a"): 1.0}),
        ("open", {("default", "a"): 0.0}),
    ],
)
def test_where_titles_decide_the_hint_tells_what_was_decided(planned, sent_to, told):
    threads = [thread("x", 0.5, expected_layer=sent_to, hinted_layer=sent_to)]

    assert ProfileCoverage().of(planned(BY_TITLE, steered=True), threads) == told


def test_a_hint_that_is_not_given_yet_tells_nothing(planned):
    threads = [thread("x", 0.5, expected_layer="high", hinted_layer="open")]

    assert ProfileCoverage().of(planned(BY_TITLE, steered=True), threads) == {}


def test_a_little_that_is_undecided_leaves_the_rest_to_be_told(planned):
    little = [thread("query-1", 0.95), thread("x", 0.05)]
    much = [thread("query-1", 0.5), thread("x", 0.5)]

    coverage, plan = ProfileCoverage(), planned(BOTH, steered=True)

    assert coverage.of(plan, little) == {("default", "a"): 1.0}
    assert coverage.of(plan, much) == {}


def test_another_plan_is_judged_anew(planned):
    coverage = ProfileCoverage()
    threads = [thread("query-1", 0.5)]

    before = coverage.of(planned(PROFILE), threads)
    after = coverage.of(planned(PROFILE.replace('"query"', '"ask"')), threads)

    assert (before, after) == ({("default", "a"): 1.0}, {("default", "a"): 0.0})


@pytest.mark.parametrize(("comm", "verdict"), [("query-1", True), ("io#12", True), ("other", None)])
def test_names_decide_where_they_can(comm, verdict):
    groups = parse_profile(BOTH, "db.toml").thread_groups

    assert takes_by_name(groups, ThreadIdentity("", comm, "db")) is verdict
