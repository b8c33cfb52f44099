import os
from pathlib import Path
from weakref import ref

import pytest

from temper_core.node.cgroup_names import identify
from temper_core.node.cgroups import (
    CgroupMounts,
    CgroupTree,
    detect_cgroups,
    thread_cgroup,
    thread_owner,
)
from tests.core.node.trees import make_cgroup, make_hierarchy, write_files

HYBRID = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate
"""
UNIFIED = "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
BOUND = "90 23 0:28 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
real_cgroups = detect_cgroups()
needs_real_tree = pytest.mark.skipif(
    real_cgroups.unified is None or not os.access(real_cgroups.unified, os.W_OK),
    reason="needs a cgroup v2 hierarchy that may be written to",
)


@pytest.fixture
def proc(tmp_path):
    def write(mountinfo):
        return write_files(tmp_path / "proc", {"self/mountinfo": mountinfo})

    return write


@pytest.fixture
def real_cgroup():
    """A cgroup of our own in this machine's tree; it and what is in it go away again."""
    top = real_cgroups.unified / f"temper-test-{os.getpid()}"
    top.mkdir()
    yield top
    for directory, _, _ in os.walk(top, topdown=False):
        Path(directory).rmdir()


def test_a_unified_host_has_one_hierarchy(tmp_path, proc):
    root = make_hierarchy(tmp_path / "cgroup")

    assert detect_cgroups(proc(UNIFIED), root) == CgroupMounts(root, {})


def test_a_hybrid_host_has_both(tmp_path, proc):
    root = tmp_path / "cgroup"
    unified = make_hierarchy(root / "unified")
    cpu = make_hierarchy(root / "cpu,cpuacct", version=1)
    systemd = make_hierarchy(root / "systemd", version=1)

    mounts = detect_cgroups(proc(HYBRID), root)

    assert mounts.is_hybrid
    assert mounts.unified == unified
    assert mounts.v1 == {"cpu": cpu, "cpuacct": cpu, "name=systemd": systemd}


@pytest.mark.parametrize("mountinfo", ["", "nonsense\n- cgroup2\n", BOUND])
def test_where_the_mount_table_does_not_help_the_files_decide(tmp_path, proc, mountinfo):
    v2 = make_hierarchy(tmp_path / "v2")
    hybrid = tmp_path / "hybrid"
    unified = make_hierarchy(hybrid / "unified")
    cpu = make_hierarchy(hybrid / "cpu", version=1)
    systemd = make_hierarchy(tmp_path / "v1/systemd", version=1)
    table = proc(mountinfo)

    assert detect_cgroups(table, v2) == CgroupMounts(v2, {})
    assert detect_cgroups(table, hybrid) == CgroupMounts(unified, {"cpu": cpu})
    assert detect_cgroups(table, tmp_path / "v1") == CgroupMounts(None, {"name=systemd": systemd})
    assert detect_cgroups(table, tmp_path / "nothing") == CgroupMounts(None, {})


def test_a_table_of_another_layout_than_the_files_does_not_mislead(tmp_path, proc):
    root = tmp_path / "cgroup"
    unified = make_hierarchy(root / "unified")

    assert detect_cgroups(proc(UNIFIED), root).unified == unified


def test_no_proc_at_all_is_no_obstacle(tmp_path):
    root = make_hierarchy(tmp_path / "cgroup")

    assert detect_cgroups(tmp_path / "absent", str(root)).unified == root


@needs_real_tree
def test_the_hierarchies_of_this_machine_are_found():
    mounts = detect_cgroups()

    assert (mounts.unified / "cgroup.controllers").exists()
    assert all((directory / "tasks").exists() for directory in mounts.v1.values())


@pytest.mark.parametrize(
    ("text", "cgroup"),
    [
        ("0::/\n", ""),
        ("0::/system.slice/a.service\n", "system.slice/a.service/"),
        (
            "4:memory:/m/1\n1:name=systemd:/system.slice/a.service\n0::/\n",
            "system.slice/a.service/",
        ),
        ("4:cpu,cpuacct:/kubepods/x\n3:memory:/m\n0::/\n", "kubepods/x/"),
        ("4:memory:/m/1\n0::/user.slice\n", "user.slice/"),
        ("9:name=systemd:/\n4:memory:/m/1\n", "m/1/"),
        ("0::/a:b/c\n", "a:b/c/"),
        ("", ""),
        ("garbage", ""),
    ],
)
def test_a_threads_cgroup_is_its_v2_path_or_the_best_other(text, cgroup):
    assert thread_cgroup(text) == cgroup


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        (
            "0::/kubepods.slice/kubepods-pod0a1b2c3d_1111_2222_3333_444455556666.slice\n",
            "pod-0a1b2c3d",
        ),
        (f"0::/docker/{'0123456789abcdef' * 4}\n", "docker-0123456789ab"),
        ("0::/system.slice/mysql.service\n", "mysql.service"),
        ("0::/temper.slice/run-batch@low/worker\n", "batch"),
        ("0::/\n", ""),
        ("", ""),
    ],
)
def test_a_threads_owner_is_named(text, owner):
    assert thread_owner(text) == owner


def test_a_tree_lists_every_directory(tmp_path):
    tree = CgroupTree(make_hierarchy(tmp_path, ["a.slice/b.service", "c"]))

    assert tree.refresh()
    assert set(tree.paths) == {"", "a.slice", "a.slice/b.service", "c"}


def test_the_owner_of_a_removed_cgroup_is_not_kept(tmp_path):
    kept, removed = (f"kubepods/pod{number:032x}" for number in range(2))
    for path in (kept, removed):
        (tmp_path / path).mkdir(parents=True)
    tree = CgroupTree(tmp_path)
    tree.refresh()
    owners = [ref(identify(path)) for path in (kept, removed)]

    (tmp_path / removed).rmdir()
    tree.refresh()

    assert [owner() is not None for owner in owners] == [True, False]


def test_a_tree_that_is_not_there_is_empty(tmp_path):
    tree = CgroupTree(tmp_path / "absent")

    assert not tree.refresh()
    assert tree.paths == ()


def test_a_tree_stops_at_its_limit_and_says_so(tmp_path):
    make_hierarchy(tmp_path, [f"c{number}" for number in range(10)])
    limited, whole = CgroupTree(tmp_path, limit=5), CgroupTree(tmp_path, limit=11)

    limited.refresh()
    whole.refresh()

    assert (len(limited.paths), limited.is_truncated) == (5, True)
    assert (len(whole.paths), whole.is_truncated) == (11, False)


def test_a_path_that_is_longer_than_any_of_a_pod_is_left_out(tmp_path):
    """Python keeps four bytes of each character beside one beyond U+FFFF."""
    deep = "\U0001f600/" + "/".join("x" * 200 for _ in range(4))
    make_hierarchy(tmp_path, [deep, "a/b"])
    tree = CgroupTree(tmp_path)

    tree.refresh()

    assert {"a/b", deep[:403]} <= set(tree.paths)
    assert deep not in tree.paths


def test_a_symbolic_link_is_not_followed(tmp_path):
    make_hierarchy(tmp_path, ["a"])
    (tmp_path / "a/loop").symlink_to(tmp_path)
    tree = CgroupTree(tmp_path)

    tree.refresh()

    assert set(tree.paths) == {"", "a"}


def check_that_changes_are_seen(root):
    """Every kind of change, each followed by a look that sees nothing new."""
    tree = CgroupTree(root)
    seen = []
    for change in (
        lambda: None,
        lambda: make_cgroup(root, "a/b"),
        lambda: make_cgroup(root, "a/c"),
        lambda: ((root / "a/b").rmdir(), make_cgroup(root, "a/d")),
        lambda: ((root / "a/d").rmdir(), make_cgroup(root, "a/d")),
        lambda: [(root / path).rmdir() for path in ("a/c", "a/d", "a")],
    ):
        change()
        seen.append((tree.refresh(), set(tree.paths) - {""}, tree.refresh()))
    assert seen == [
        (True, set(), False),
        (True, {"a", "a/b"}, False),
        (True, {"a", "a/b", "a/c"}, False),
        (True, {"a", "a/c", "a/d"}, False),
        (True, {"a", "a/c", "a/d"}, False),
        (True, set(), False),
    ]


@needs_real_tree
def test_every_change_of_a_real_tree_is_seen_and_nothing_else(real_cgroup):
    check_that_changes_are_seen(real_cgroup)


@needs_real_tree
def test_a_quiet_real_tree_is_not_listed_again(real_cgroup, monkeypatch):
    make_cgroup(real_cgroup, "a/b/c")
    tree = CgroupTree(real_cgroup)
    tree.refresh()

    monkeypatch.setattr(os, "scandir", None)

    assert not tree.refresh()
    assert set(tree.paths) == {"", "a", "a/b", "a/b/c"}
