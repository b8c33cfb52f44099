import pytest

from temper_core.node.cgroups import PodIndex
from temper_core.records.pods import Container, Pod

ID = "0123456789abcdef" * 4
UID = "8f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f"
POD_PATH = f"kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice"

WEB = Pod(
    UID, "shop", "web", containers=(Container("app", runtime_id=ID),), cgroups=(f"{POD_PATH}/",)
)
OUTER = Pod("outer", "", "outer", cgroups=("batch.slice/", "other.slice/"))
INNER = Pod("inner", "", "inner", cgroups=("batch.slice/special.service/",))
INDEX = PodIndex([WEB, OUTER, INNER])


@pytest.mark.parametrize(
    ("path", "pod"),
    [
        (f"{POD_PATH}/cri-containerd-{ID}.scope/", WEB),
        (POD_PATH, WEB),
        (f"/{POD_PATH}/", WEB),
        ("batch.slice/", OUTER),
        ("other.slice/x/", OUTER),
        ("batch.slice/a.service/b/", OUTER),
        ("batch.slice/special.service/b/", INNER),
        ("batch.slicer/", None),
        ("batch/", None),
        ("", None),
        ("/", None),
    ],
)
def test_the_longest_path_above_a_thread_decides(path, pod):
    assert INDEX.find(path) is pod


def test_a_pod_without_paths_is_found_by_its_uid_in_any_hierarchy():
    listed = Pod(UID, "shop", "web")

    index = PodIndex([listed])

    assert index.find(f"kubepods/burstable/pod{UID}/{ID}") is listed
    assert index.find(f"docker/{ID}/kubelet/{POD_PATH}/cri-containerd-{ID}.scope/") is listed


def test_no_name_of_a_cgroup_leads_to_a_pod_whose_cgroups_are_known():
    container = Pod(ID, "", f"docker-{ID[:12]}", cgroups=(f"docker/{ID}/",))

    assert INDEX.find(f"lxc.payload.c1/{POD_PATH}") is None
    assert PodIndex([container]).find(f"lxc.payload.c1/docker-{ID}.scope") is None


def test_a_lone_container_is_found_by_its_id():
    container = Pod(ID, "", f"docker-{ID[:12]}")

    assert PodIndex([container]).find(f"docker/{ID}/") is container


def test_the_container_of_a_thread_is_known_by_its_runtime_id():
    path = f"{POD_PATH}/cri-containerd-{ID}.scope/"

    assert INDEX.container(path) == WEB.containers[0]
    assert INDEX.container(POD_PATH) is None
    assert INDEX.container_name(path) == "app"


@pytest.mark.parametrize(
    ("path", "name"),
    [(f"docker/{ID}", ID[:12]), ("system.slice/a.service", ""), (POD_PATH, ""), ("", "")],
)
def test_an_unknown_container_is_called_by_its_short_id(path, name):
    assert PodIndex([]).container_name(path) == name


def test_an_index_of_no_pods_finds_none():
    assert PodIndex([]).find(f"{POD_PATH}/x") is None
