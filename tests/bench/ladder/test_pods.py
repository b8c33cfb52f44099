import json

import pytest

from bench.ladder.pods import Cgroups, Pod, podlist, weight


@pytest.mark.parametrize(("millicores", "expected"), [(0, 1), (100, 4), (1500, 59), (4000, 157)])
def test_a_request_has_the_weight_of_the_kubelet(millicores, expected):
    assert weight(millicores) == expected


@pytest.fixture
def cgroups(tmp_path):
    (tmp_path / "cgroup.subtree_control").touch()
    return Cgroups(tmp_path)


def test_a_container_has_the_weight_of_its_request_and_the_quota_of_its_limit(cgroups):
    container = cgroups.make_pod(Pod("api", 1, 0, request=1500, limit=2000))

    for cgroup in (container, container.parent):
        assert (cgroup / "cpu.weight").read_text() == "59"
        assert (cgroup / "cpu.max").read_text() == "200000 100000"


def test_a_pod_without_a_limit_has_no_quota(cgroups):
    container = cgroups.make_pod(Pod("batch", 2, -1000))

    assert "kubepods-besteffort.slice" in str(container)
    assert (container / "cpu.max").read_text() == "max 100000"


def test_the_classes_above_have_the_weight_of_all_their_pods(cgroups, tmp_path):
    pods = [Pod("a", 1, 0, request=1000), Pod("b", 2, 0, request=500), Pod("c", 3, 0)]
    for pod in pods:
        cgroups.make_pod(pod)

    cgroups.weigh_classes(pods, cpus=4)

    slices = tmp_path / "kubepods.slice"
    assert (slices / "cpu.weight").read_text() == "157"
    assert (slices / "kubepods-burstable.slice/cpu.weight").read_text() == "59"
    assert (slices / "kubepods-besteffort.slice/cpu.weight").read_text() == "1"


def test_a_podlist_has_requests_priorities_and_the_profile():
    items = json.loads(podlist([Pod("api", 1, 7, request=1500, profile="ladder")]))["items"]

    (item,) = items
    assert item["spec"]["priority"] == 7
    assert item["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1500m"}}
    assert item["metadata"]["annotations"] == {"temper.codes/workload-profile": "ladder"}
    assert item["status"]["qosClass"] == "Burstable"
