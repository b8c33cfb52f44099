"""What becomes of pods where the real API server asks the real webhook."""

import json
import subprocess

import pytest
import yaml

from temper_core import cpu_millis
from tests.control_plane.cluster import unique, wait_until
from tests.density.overcommit.shop import (
    TEMPER,
    Shop,
    originals_of,
    pod,
    request_of,
)

SPELLINGS = (
    "1", "+1", "1.", "1.0", "0.1", ".5", "100m", "1500m", "1e3", "1E3", "1e-1", "1E-1", "12E-2",
    "2k", "0.002k", "1500u", "10500u", "250000u", "100000000n", "99999999n", "1Ki", "0.5Ki", "0",
    "5m", "10m", "11m", "1e0", "0.0123", "000.30", "0.0015",
)  # fmt: skip


@pytest.fixture
def priority_class(cluster):
    """Make a PriorityClass of that value that the admission of pods knows. Return its name."""
    made = []

    def make(value):
        name = unique("class")
        made.append({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
        cluster.make(made[-1])
        tried, path = pod(priorityClassName=name), "/api/v1/namespaces/default/pods?dryRun=All"
        wait_until(lambda: cluster.client.post(path, json=tried).is_success, "the class is known")
        return name

    yield make
    for each in made:
        cluster.delete(each)


def test_a_pod_of_a_labelled_namespace_is_lowered_and_its_original_annotated(served):
    made = served.create(pod(requests={"cpu": "1", "memory": "64Mi"}))

    assert request_of(made) == "700m"
    assert originals_of(made) == {"app": "1"}
    assert made["spec"]["containers"][0]["resources"]["requests"]["memory"] == "64Mi"
    assert made["status"]["qosClass"] == "Burstable"


def test_a_pod_of_a_namespace_without_the_label_stays_as_it_is(served):
    made = served.create(pod(requests={"cpu": "1"}), namespace="default", dry_run=True)

    assert (request_of(made), originals_of(made)) == ("1", None)


def test_limits_are_untouched(served):
    made = served.create(pod(requests={"cpu": "1"}, limits={"cpu": "2", "memory": "1Gi"}))

    assert request_of(made) == "700m"
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "2", "memory": "1Gi"}


def test_a_limit_that_stands_for_the_request_is_lowered_as_that_and_stays_the_limit(served):
    made = served.create(pod(limits={"cpu": "2"}))

    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2"},
        "requests": {"cpu": "1400m"},
    }
    assert made["status"]["qosClass"] == "Burstable"


def test_a_guaranteed_pod_stays_guaranteed(served):
    size = {"cpu": "1", "memory": "64Mi"}

    made = served.create(pod(requests=size, limits=size))

    assert (request_of(made), originals_of(made)) == ("1", None)
    assert made["status"]["qosClass"] == "Guaranteed"


def test_a_best_effort_pod_stays_best_effort(served):
    made = served.create(pod())

    assert (request_of(made), originals_of(made)) == (None, None)
    assert made["status"]["qosClass"] == "BestEffort"


@pytest.mark.parametrize(("value", "left"), [(1_000_000, "1"), (999_999, "700m"), (-1000, "700m")])
def test_critical_pods_alone_are_spared_by_their_tier(served, priority_class, value, left):
    made = served.create(pod(requests={"cpu": "1"}, priorityClassName=priority_class(value)))

    assert request_of(made) == left


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
def test_pods_of_kubernetes_own_classes_are_spared(served, name):
    made = served.create(pod(requests={"cpu": "1"}, priorityClassName=name), dry_run=True)

    assert request_of(made) == "1"


def test_a_pod_can_opt_out(served):
    asked = pod(requests={"cpu": "1"})
    asked["metadata"]["annotations"] = {"temper.codes/overcommit": "disabled"}

    assert request_of(served.create(asked)) == "1"


def test_sidecars_and_init_containers_are_lowered_too(served):
    def container(name, **more):
        resources = {"requests": {"cpu": "500m"}}
        return {"name": name, "image": "registry.example/app:1", "resources": resources, **more}

    asked = pod(
        requests={"cpu": "1"},
        initContainers=[container("mesh", restartPolicy="Always"), container("migrate")],
    )

    made = served.create(asked)

    lowered = [request_of(made, index, "initContainers") for index in (0, 1)]
    assert lowered == ["350m", "350m"]
    assert originals_of(made) == {"app": "1", "mesh": "500m", "migrate": "500m"}


def test_a_pod_with_resources_of_its_own_stays_as_it_is(served):
    asked = pod(requests={"cpu": "500m"}, resources={"requests": {"cpu": "1"}})

    made = served.create(asked)

    assert (request_of(made), made["spec"]["resources"]["requests"]["cpu"]) == ("500m", "1")


def test_every_spelling_of_a_request_becomes_what_the_api_server_reads_it_as(served, tmp_path):
    asked = pod()
    asked["spec"]["containers"] = [
        {"name": f"c{index}", "image": "x", "resources": {"requests": {"cpu": spelling}}}
        for index, spelling in enumerate(SPELLINGS)
    ]

    made = served.create(asked)

    before = [cpu_millis(spelling) for spelling in SPELLINGS]
    expected = [millis if millis <= 10 else max(10, -(-millis * 7 // 10)) for millis in before]
    given = [request_of(made, index) for index in range(len(SPELLINGS))]
    assert [cpu_millis(text) for text in given] == expected
    kept = {name: cpu_millis(text) for name, text in originals_of(made).items()}
    assert kept == {
        f"c{index}": was
        for index, (was, now) in enumerate(zip(before, expected, strict=True))
        if was != now
    }
    assert previewed(asked, tmp_path) == expected


def previewed(asked, directory):
    path = directory / "pod.yaml"
    path.write_text(yaml.safe_dump(asked))
    asking = [TEMPER, "overcommit", "preview", "-f", str(path), "--output", "json"]
    said = subprocess.run(asking, check=True, capture_output=True, text=True)
    (document,) = json.loads(said.stdout)
    return [cpu_millis(container["after"]) for container in document["containers"]]


def test_a_pod_made_anew_without_the_label_has_what_it_asked_for(cluster, served):
    asked = pod(requests={"cpu": "1"})
    lowered = served.create(asked)

    served.label("disabled")
    try:
        cluster.delete({**asked, "metadata": lowered["metadata"]})
        made = served.create(asked)
    finally:
        served.label("enabled")

    assert (request_of(lowered), request_of(made)) == ("700m", "1")


def test_a_pod_made_anew_from_a_lowered_one_is_not_lowered_twice(served):
    first = served.create(pod(requests={"cpu": "1"}))

    again = pod(requests={"cpu": request_of(first)})
    again["metadata"]["annotations"] = first["metadata"]["annotations"]
    made = served.create(again)

    assert (request_of(made), originals_of(made)) == ("700m", {"app": "1"})


def test_a_forged_original_raises_nothing_and_is_corrected(served):
    forged = pod(requests={"cpu": "1"})
    forged["metadata"]["annotations"] = {
        "temper.codes/original-cpu-requests": '{"app":"64"}',
        "mine": "stays",
    }

    made = served.create(forged)

    assert (request_of(made), originals_of(made)) == ("700m", {"app": "1"})
    assert made["metadata"]["annotations"]["mine"] == "stays"


def test_a_pod_that_the_api_server_refuses_is_not_made_acceptable(served):
    with pytest.raises(AssertionError, match="must be less than or equal to cpu limit"):
        served.create(pod(requests={"cpu": "1"}, limits={"cpu": "700m", "memory": "1Gi"}))


def test_the_webhook_counts_what_it_did(served):
    before = served.replica.metric("temper_overcommit_freed_millicores_total")

    served.create(pod(requests={"cpu": "2"}))
    served.create(pod(requests={"cpu": "2"}), dry_run=True)

    after = served.replica.metric("temper_overcommit_freed_millicores_total")
    assert after - before == 600
    assert served.replica.metric("temper_overcommit_admission_seconds_count") >= 2


def report(shop):
    asking = [TEMPER, "overcommit", "report", "--output", "json"]
    administrator = str(shop.cluster.directory / "kubeconfig")
    said = subprocess.run(
        [*asking, "--kubeconfig", administrator], check=False, capture_output=True, text=True
    )
    assert not said.stderr
    rows = {row["namespace"]: row for row in json.loads(said.stdout)}
    return said.returncode, rows.get(shop.namespace)


@pytest.fixture
def other(cluster, tmp_path):
    """A labelled namespace that no webhook serves."""
    shop = Shop(cluster, tmp_path)
    yield shop
    shop.label("disabled")
    shop.close()


def test_the_report_counts_lowered_pods_and_what_they_free(other):
    lowered = pod(requests={"cpu": "700m"})
    lowered["metadata"]["annotations"] = {"temper.codes/original-cpu-requests": '{"app":"1"}'}
    other.create(lowered)
    other.create(pod(requests={"cpu": "1"}))

    code, row = report(other)

    assert code == 0
    assert row == {
        "namespace": other.namespace,
        "is_labelled": True,
        "pods": 2,
        "lowered": 1,
        "freed_millis": 300,
        "findings": [],
    }


def test_the_report_names_a_limit_range_by_which_lowered_pods_are_refused(served):
    limits = {
        "kind": "LimitRange",
        "metadata": {"name": "least"},
        "spec": {"limits": [{"type": "Container", "min": {"cpu": "800m"}}]},
    }
    path = f"/api/v1/namespaces/{served.namespace}/limitranges"
    served.cluster.call("POST", path, limits)
    try:
        with pytest.raises(AssertionError, match="minimum cpu usage per Container is 800m"):
            served.create(pod(requests={"cpu": "1"}))
        code, row = report(served)
    finally:
        served.cluster.call("DELETE", f"{path}/least")

    assert (code, row["findings"]) == (1, ["LimitRange least: refuses requests below 800m"])
