import os

import pytest

from temper_core import InputError, MachineError
from temper_core.node.pod_cgroups import find_pod_cgroups
from temper_core.settings import Settings

UID = "0a1b2c3d-0000-4000-8000-000000000001"
CONTAINER_ID = "ab" * 32


@pytest.fixture
def pod_tree(tmp_path):
    """A cgroup v2 tree with one pod of one container, whose process is ours."""
    container = tmp_path / f"cgroup/kubepods/burstable/pod{UID}/{CONTAINER_ID}"
    (container / "worker").mkdir(parents=True)
    for directory in (container / "worker", container, *container.parents[:4]):
        (directory / "cgroup.controllers").write_text("cpu\n")
        (directory / "cgroup.procs").write_text("")
    return container


def test_a_pods_cgroups_are_found_with_the_processes_below_them(pod_tree):
    (pod_tree / "worker" / "cgroup.procs").write_text(f"{os.getpid()}\n")

    found = find_pod_cgroups(f"pod-{UID[:8]}", Settings(), cgroup_root=str(pod_tree.parents[3]))

    assert found.directories == (pod_tree.parent,)
    assert found.container(pod_tree / "worker") == ""


def test_a_pod_that_is_not_there_is_refused_with_what_it_may_be(pod_tree):
    with pytest.raises(InputError, match=f"did you mean pod-{UID[:8]}"):
        find_pod_cgroups(f"pod-{UID[:7]}", Settings(), cgroup_root=str(pod_tree.parents[3]))


def test_a_host_without_cgroups_cannot_find_pods(tmp_path):
    with pytest.raises((InputError, MachineError)):
        find_pod_cgroups("shop", Settings(), cgroup_root=str(tmp_path))
