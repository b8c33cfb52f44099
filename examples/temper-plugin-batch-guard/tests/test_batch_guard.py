from pathlib import Path

import pytest

import temper_plugin_batch_guard
from temper_core import (
    Detector,
    Exporter,
    Invariant,
    PluginError,
    PodSample,
    Tier,
    parse_profile,
)
from temper_core.testing import assert_keeps_contract, make_pod, make_snapshot, make_thread
from temper_plugin_batch_guard.batch_usage import batch_usage
from temper_plugin_batch_guard.in_the_way import batch_in_the_way
from temper_plugin_batch_guard.limits import Limits
from temper_plugin_batch_guard.recognise import recognise

PROFILE = Path(__file__).parents[1] / "profiles" / "batch.toml"
JOB = PodSample("ops", "backup", "uid-1", Tier.LOW, 1, cpu_used=0.75, profile="batch")
SERVICE = PodSample("shop", "web", "uid-2", Tier.HIGH, 1, cpu_used=0.25)


def of_the_job(**changes):
    own = {"namespace": "ops", "pod": "backup", "tier": Tier.LOW}
    return make_thread("gzip", tid=10, **{**own, **changes})


def of_the_service(**changes):
    own = {"namespace": "shop", "pod": "web", "tier": Tier.HIGH, "run_delay_ratio": 0.4}
    return make_thread("http", tid=20, **{**own, **changes})


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_batch_guard, "batch-guard")


@pytest.mark.parametrize(
    ("hook", "record", "name"),
    [
        ("temper_detectors", Detector, "batch-jobs"),
        ("temper_exporters", Exporter, "batch-usage"),
        ("temper_invariants", Invariant, "batch_in_the_way"),
    ],
)
def test_each_hook_contributes_one_record(host, hook, record, name):
    host.add(temper_plugin_batch_guard, "batch-guard")

    [contribution] = host.gather(hook, record)

    assert contribution.record.name == name


def test_a_setting_that_is_none_sets_the_plugin_aside():
    with pytest.raises(PluginError, match="waitin"):
        assert_keeps_contract(temper_plugin_batch_guard, "batch-guard", {"waitin": 0.5})


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (make_pod("backup-1", owner="Job/backup"), "its owner Job/backup"),
        (make_pod("backup-1", labels={"job-name": "backup"}), "its label job-name"),
        (make_pod("nightly-3"), "its name, which is like nightly-*"),
    ],
)
def test_a_batch_job_is_recognised(pod, why):
    detection = recognise(pod, Limits(names=("nightly-*",)))

    assert (detection.profile, detection.why) == ("batch", why)


def test_a_service_is_no_batch_job():
    assert recognise(make_pod("web", owner="ReplicaSet/web"), Limits()) is None


def test_an_owner_is_a_surer_sign_than_a_name():
    limits = Limits(names=("*",))

    owned = recognise(make_pod("a", owner="Job/a"), limits)
    named = recognise(make_pod("b"), limits)

    assert owned.confidence > named.confidence


def test_the_profile_that_ships_with_it_is_the_one_it_names():
    assert parse_profile(PROFILE.read_text(), "batch.toml").id == Limits().profile


def test_the_exporter_sums_up_the_batch_jobs_alone():
    metrics = batch_usage(make_snapshot(pods=(JOB, SERVICE)), Limits())

    values = {metric.name: metric.samples[0].value for metric in metrics}
    assert values == {"temper_batch_pods": 1, "temper_batch_cpus_used": 0.75}


def test_a_service_that_waits_for_the_cpu_of_a_job_is_found():
    snapshot = make_snapshot(of_the_job(), of_the_service(), pods=(JOB, SERVICE))

    [finding] = batch_in_the_way(snapshot, Limits())

    assert finding.subject == "web http", "without its number, which is another after a restart"
    assert finding.message.startswith("[20] waits 40% of the time")
    assert "backup uses 0.50" in finding.message
    assert finding.evidence["waiting"] == 0.4


@pytest.mark.parametrize(
    ("job", "service"),
    [
        ({"cpu": 1}, {}),
        ({"cpu_used": 0.1}, {}),
        ({}, {"run_delay_ratio": 0.01}),
        ({}, {"tier": Tier.NORMAL}),
        ({"pod": "other"}, {}),
    ],
    ids=["another CPU", "idle job", "no wait", "not important", "no job"],
)
def test_nothing_is_found_where_one_of_the_conditions_is_missing(job, service):
    snapshot = make_snapshot(of_the_job(**job), of_the_service(**service), pods=(JOB, SERVICE))

    assert list(batch_in_the_way(snapshot, Limits())) == []
