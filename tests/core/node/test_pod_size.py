import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.node.podlist import read_pods
from temper_core.records.pods import QosClass

READY = {"conditions": [{"type": "Initialized", "status": "True"}]}
STARTING = {"conditions": [{"type": "Initialized", "status": "False"}]}


def container(request=None, limit=None, *, sidecar=False, memory=None):
    resources = {
        key: {"cpu": cpu} if memory is None else {"cpu": cpu, "memory": memory}
        for key, cpu in (("requests", request), ("limits", limit))
        if cpu is not None
    }
    policy = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": "c", "resources": resources, **policy}


def pod_of(*containers, init=(), status=READY, **spec):
    document = {
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
        "status": status,
    }
    (pod,) = read_pods(json.dumps(document), source="pod.json")
    return pod


def size_of(*containers, **options):
    pod = pod_of(*containers, **options)
    return pod.cpu_request_millis, pod.cpu_limit_millis


@pytest.mark.parametrize(
    ("containers", "size"),
    [
        ([container()], (0, None)),
        ([container("100m")], (100, None)),
        ([container(limit="2")], (2000, 2000)),
        ([container("100m", "2"), container("1", "1")], (1100, 3000)),
        ([container("100m", "2"), container("1")], (1100, None)),
        ([container("100m", "0")], (100, None)),
        ([container("0", "1")], (0, 1000)),
    ],
)
def test_containers_add_up_and_one_without_limit_lifts_the_limit(containers, size):
    assert size_of(*containers) == size


@pytest.mark.parametrize(
    ("status", "size"),
    [(READY, (300, 600)), (STARTING, (2000, 3000)), ({}, (2000, 3000)), (None, (2000, 3000))],
)
def test_an_init_container_counts_until_the_pod_is_initialised(status, size):
    assert size_of(container("300m", "600m"), init=[container("2", "3")], status=status) == size


def test_a_smaller_init_container_changes_nothing():
    init = [container("100m", "100m"), container("200m", "200m")]

    assert size_of(container("300m", "600m"), init=init, status=STARTING) == (300, 600)


@pytest.mark.parametrize("status", [READY, STARTING])
def test_a_native_sidecar_always_counts(status):
    init = [container("100m", "200m", sidecar=True)]

    assert size_of(container("300m", "600m"), init=init, status=status) == (400, 800)


def test_an_init_container_runs_beside_the_sidecars_started_before_it():
    init = [
        container("2", sidecar=True),
        container("5"),
        container("1", sidecar=True),
        container("1"),
    ]

    assert size_of(container("500m"), init=init, status=STARTING)[0] == 7000
    assert size_of(container("500m"), init=init)[0] == 3500


def test_an_init_container_without_limit_lifts_the_limit_while_it_counts():
    init = [container("100m")]

    assert size_of(container("300m", "600m"), init=init, status=STARTING) == (300, None)
    assert size_of(container("300m", "600m"), init=init) == (300, 600)


@pytest.mark.parametrize(("limit", "whole"), [("1", 1250), (None, None)])
def test_overhead_is_added_to_the_request_and_to_a_limit_that_there_is(limit, whole):
    assert size_of(container("500m", limit), overhead={"cpu": "250m"}) == (750, whole)


@pytest.mark.parametrize(
    ("resources", "size"),
    [
        ({"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}, (3000, 4000)),
        ({"requests": {"cpu": "100m"}}, (100, None)),
        ({"limits": {"cpu": "4"}}, (500, 4000)),
        ({"requests": {"memory": "1Gi"}}, (500, None)),
        ({}, (500, None)),
    ],
)
def test_resources_of_the_pod_override_those_of_its_containers(resources, size):
    assert size_of(container("500m"), resources=resources) == size


def test_a_limit_of_the_pod_is_its_request_where_nobody_asks_for_anything():
    assert size_of(container(), resources={"limits": {"cpu": "4"}}) == (4000, 4000)


def test_overhead_comes_on_top_of_the_resources_of_the_pod():
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}

    assert size_of(container(), resources=resources, overhead={"cpu": "50m"}) == (1050, 1050)


def test_containers_of_the_record_are_those_that_keep_running():
    pod = pod_of(
        container("1"), init=[container("2"), container("500m", "1", sidecar=True)], status=STARTING
    )

    assert [each.cpu_request_millis for each in pod.containers] == [1000, 500]
    assert [each.cpu_limit_millis for each in pod.containers] == [None, 1000]


@pytest.mark.parametrize(
    ("containers", "init", "qos_class"),
    [
        ([container()], [], QosClass.BEST_EFFORT),
        ([container("0", "0")], [], QosClass.BEST_EFFORT),
        ([container("1")], [], QosClass.BURSTABLE),
        ([container("1", "1")], [], QosClass.BURSTABLE),
        ([container("1", "1", memory="1Gi")], [], QosClass.GUARANTEED),
        ([container(limit="1", memory="1Gi")], [], QosClass.GUARANTEED),
        ([container("500m", "1", memory="1Gi")], [], QosClass.BURSTABLE),
        ([container("1", "1", memory="1Gi"), container()], [], QosClass.BURSTABLE),
        ([container("1", "1", memory="1Gi")], [container()], QosClass.BURSTABLE),
        ([container()], [container("1")], QosClass.BURSTABLE),
        ([container("1000m", "1", memory="1024Mi")], [], QosClass.GUARANTEED),
    ],
)
def test_without_a_status_the_class_follows_from_cpu_and_memory(containers, init, qos_class):
    assert pod_of(*containers, init=init).qos_class is qos_class


def test_the_class_in_the_status_wins():
    assert pod_of(container(), status={"qosClass": "Guaranteed"}).qos_class is QosClass.GUARANTEED


def test_resources_of_the_pod_decide_the_class():
    same = {"cpu": "1", "memory": "1Gi"}

    pod = pod_of(container("500m"), resources={"requests": same, "limits": same})

    assert pod.qos_class is QosClass.GUARANTEED


def test_resources_of_the_pod_that_say_nothing_decide_nothing():
    assert pod_of(container("500m"), resources={"requests": {}}).qos_class is QosClass.BURSTABLE


millis = st.integers(0, 4000)
parts = st.tuples(millis, st.booleans())


@given(st.lists(millis, min_size=1, max_size=4), st.lists(parts, max_size=4), millis)
def test_a_starting_pod_is_as_large_as_its_largest_moment(apps, inits, overhead):
    # Play the start through: each init container beside the sidecars that already run.
    moments, sidecars = [0], 0
    for size, is_sidecar in inits:
        moments.append(sidecars + size)
        sidecars += size if is_sidecar else 0
    moments.append(sidecars + sum(apps))

    request, _ = size_of(
        *[container(f"{size}m") for size in apps],
        init=[container(f"{size}m", sidecar=is_sidecar) for size, is_sidecar in inits],
        overhead={"cpu": f"{overhead}m"},
        status=STARTING,
    )

    assert request == max(moments) + overhead
