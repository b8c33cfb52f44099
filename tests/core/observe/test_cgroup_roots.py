from pathlib import Path

import pytest
from attrs import asdict

from temper_core.node.cgroups import detect_cgroups
from temper_core.observe.cgroup_roots import CgroupRoots


def test_what_is_not_mounted_is_empty():
    assert CgroupRoots.of(None, {}) == CgroupRoots(unified="")


@pytest.mark.parametrize("name", ["cpu", "cpuacct", "memory", "cpuset"])
def test_every_controller_of_version_1_that_is_read_is_taken(name):
    roots = CgroupRoots.of(Path("/v2"), {name: Path("/v1") / name, "freezer": Path("/v1/freezer")})

    assert {key: root for key, root in asdict(roots).items() if root} == {
        "unified": "/v2",
        name: f"/v1/{name}",
    }


def test_all_that_is_taken_of_this_host_is_there():
    mounts = detect_cgroups()

    roots = CgroupRoots.of(mounts.unified, mounts.v1)

    assert all(Path(root, "cgroup.procs").exists() for root in asdict(roots).values() if root)
