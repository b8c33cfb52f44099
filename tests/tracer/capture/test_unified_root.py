"""The mount point of the whole cgroup v2 hierarchy, by the mount table of this process."""

import pytest

from temper_plugin_tracer.capture.choosing import unified_root


@pytest.fixture
def table(tmp_path):
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    (tmp_path / "self").mkdir()

    def write(root, kind="cgroup2"):
        line = f"1 1 0:1 {root} {mounted} rw shared:9 - {kind} none rw\n"
        (tmp_path / "self/mountinfo").write_text(line)
        return mounted

    write.proc = tmp_path
    return write


@pytest.mark.parametrize("root", ["/", "/..", "/../../../.."])
def test_the_root_of_the_hierarchy_is_found_from_any_cgroup_namespace(table, root):
    mounted = table(root)

    assert unified_root(table.proc) == mounted


@pytest.mark.parametrize("root", ["/", "/..", "/../../../.."])
def test_a_part_of_the_hierarchy_is_not_its_root(table, root):
    (table(root) / "cgroup.type").write_text("domain\n")

    assert unified_root(table.proc) is None


@pytest.mark.parametrize("root", ["/kubepods.slice", "/../other"])
def test_a_cgroup_that_is_mounted_elsewhere_is_not_the_root(table, root):
    table(root)

    assert unified_root(table.proc) is None


def test_other_file_systems_do_not_count(table):
    table("/", kind="cgroup")

    assert unified_root(table.proc) is None
