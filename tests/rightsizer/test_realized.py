"""What was realized in a window."""

import json

import pytest

from temper_core import Container, Tier
from temper_core.records.snapshots import PodSample
from temper_core.testing import make_pod
from temper_plugin_rightsizer.node.realized import ORIGINALS, freed_millis, reclaimed


def sample(uid, used, tier=Tier.NORMAL):
    return PodSample("shop", uid, uid, tier, 1, used)


def background(uid, used):
    return sample(uid, used, Tier.BACKGROUND)


def test_background_work_above_its_request_ran_on_what_others_requested():
    samples = [sample("web", 1.0), background("batch", 2.5)]

    assert reclaimed(samples, {"web": 4000, "batch": 500}, cpus=4) == {"batch": 2.0}


def test_cpus_that_nobody_requests_are_not_reclaimed():
    samples = [sample("web", 0.5), background("batch", 3.0)]

    assert reclaimed(samples, {"web": 2000}, cpus=4) == {"batch": 1.0}
    assert reclaimed(samples, {"web": 1000}, cpus=4) == {}


def test_no_more_counts_than_the_others_left():
    """On an overcommitted node background work may also displace others: that is no saving."""
    samples = [sample("web", 3.5), background("batch", 1.5)]

    assert reclaimed(samples, {"web": 4000}, cpus=4) == {"batch": 0.5}


def test_what_was_reclaimed_is_shared_out_by_what_each_used():
    samples = [sample("web", 0.0), background("a", 2.0), background("b", 1.0)]

    found = reclaimed(samples, {"web": 4000}, cpus=4)

    assert found == {"a": pytest.approx(2.0), "b": pytest.approx(1.0)}


def lowered(annotation, request=350):
    return make_pod(
        "web",
        "shop",
        containers=(Container("app", cpu_request_millis=request), Container("log")),
        annotations={ORIGINALS: annotation},
    )


def test_a_lowered_request_is_freed():
    pod = lowered(json.dumps({"app": "500m", "other": "2"}))

    assert freed_millis(pod, 8000) == {"app": 150}


@pytest.mark.parametrize(
    "annotation",
    ["", "{", "[]", "[" * 100_000, '{"app": 500}', '{"app": "much"}', '{"app": "100m"}'],
)
def test_an_annotation_that_is_none_of_the_webhook_frees_nothing(annotation):
    assert freed_millis(lowered(annotation), 8000) == {}


def test_no_claim_is_larger_than_the_node():
    assert freed_millis(lowered('{"app": "1000000"}'), 8000) == {"app": 7650}
