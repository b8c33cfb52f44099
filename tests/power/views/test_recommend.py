"""``temper power recommend`` on objects of a file."""

import json

import pytest

from tests.power.views.test_views import document, pod, profile, run, twin

__all__ = ["run"]

REASON = "the node drains"


def advising(name="n1", age_s=0, **status):
    made = twin(name, age_s=age_s)
    return {**made, "status": {**made["status"], **status}}


def moving(name="n1", age_s=0):
    ref = {"kind": "Deployment", "namespace": "shop", "name": "web"}
    advice = [{"workloadRef": ref, "reason": REASON}]
    return advising(name, age_s, rescheduleRecommendations=advice)


SLICING = {
    "mode": "mig",
    "sliceType": "1g.10gb",
    "slicesPerGPU": 7,
    "totalSlices": 28,
    "reason": "6 of 8 workloads with GPUs are of low intensity",
    "confidence": 0.8,
}


def test_workloads_to_start_elsewhere_are_named_with_the_cause(run):
    done = run("recommend", [moving("n2"), twin("n1")])

    head, line = done.stdout.splitlines()
    assert head.split() == ["KIND", "SUBJECT", "NODE", "ADVICE", "CAUSE"]
    assert line.split()[:3] == ["reschedule", "shop/Deployment/web", "n2"]
    assert line.endswith(REASON)
    assert done.return_value == 1


def test_the_advice_to_slice_gpus_has_counts_and_confidence(run):
    done = run("recommend", [advising(gpuSlicingRecommendation=SLICING)], "--output", "json")

    (advice,) = document(done)["recommendations"]
    assert advice["kind"] == "slice"
    assert advice["advice"] == "mig 1g.10gb, 7 for each GPU, 28 in all"
    assert advice["cause"].endswith("of low intensity (confidence 0.8)")


def test_a_performance_workload_without_a_tier_is_advice(run):
    done = run("recommend", [profile(), pod()], "--output", "json")

    (advice,) = document(done)["recommendations"]
    assert (advice["kind"], advice["subject"]) == ("tier", "shop/Deployment/solver")
    assert "priorityClassName temper-high" in advice["advice"]


@pytest.mark.parametrize(("age_s", "count"), [(290, 1), (310, 0)])
def test_advice_of_a_stale_twin_is_left_out_and_that_is_told(run, age_s, count):
    done = run("recommend", [moving(age_s=age_s)], "--output", "json")

    assert len(document(done)["recommendations"]) == done.return_value == count
    assert ("stale twins, whose advice is left out: n1" in done.stderr) == (not count)


def test_without_advice_that_is_said(run):
    done = run("recommend", [twin("n1")])

    assert (done.stdout, done.return_value) == ("nothing is advised\n", 0)


@pytest.mark.parametrize("odd", [7, [7], [{}], {"mode": 3}, "none"])
def test_an_odd_status_is_no_failure(run, odd):
    both = {"rescheduleRecommendations": odd, "gpuSlicingRecommendation": odd}

    done = run("recommend", [advising(**both)], "--output", "json")

    assert json.loads(done.stdout)["schema_version"] == 1
