"""The names of cgroups, as the engine spells them."""

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from temper_core.observe.kernel_side.cgroup_handles import CgroupHandles
from temper_core.observe.kernel_side.cgroup_paths import MOST_KNOWN, CgroupPaths
from temper_core.observe.process_text import engine_path, parse_cgroup
from tests.core.observe.kernel_side.proc_reads import BUSY, IDLE

DEEP = 1_200
CROWD = 150
"""More cgroups than one look of the kernel side can tell."""


@pytest.fixture
def sleepers():
    """Put processes that sleep into cgroups, one into each."""
    started = []

    def start(folders):
        for folder in folders:
            process = subprocess.Popen(["sleep", "600"])
            started.append(process)
            (folder / "cgroup.procs").write_text(str(process.pid))

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_row_has_the_cgroup_that_proc_tells_of_its_process(watched, spawn, let_run):
    child = spawn(BUSY)
    watched()
    let_run(child.pid)
    before = {int(each.name): said_of(each.name) for each in Path("/proc").glob("[0-9]*")}
    rows = watched().rows

    told = {row.tgid: row.cgroup for row in rows}

    # Others of this machine come, go and are moved meanwhile.
    said = {pid: path for pid, path in before.items() if path and path == said_of(pid)}
    assert {pid: path for pid, path in told.items() if said.get(pid, path) != path} == {}
    assert said[child.pid] == told[child.pid]


def said_of(pid):
    try:
        # The kernel marks a cgroup that was removed while a zombie is left in it (cgroups(7)).
        text = Path(f"/proc/{pid}/cgroup").read_bytes().replace(b" (deleted)", b"")
        return parse_cgroup(text)
    except OSError:  # it has ended
        return None


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "a/b/c/d",
        "with space",
        "kubepods-burstable-pod1_2.slice/cri-containerd-9.scope",
        "naïve",
        "x" * 250,
    ],
)
def test_a_cgroup_is_told_by_its_whole_path(reader, spawn_in, name):
    _, path = spawn_in(IDLE, name=name)

    living = reader.snapshot(0).threads_by_cgroup

    assert path.endswith(f"/{name}/")
    assert living[path] == 1


def test_a_name_that_is_no_text_is_told_with_marks_in_it(reader, spawn_in):
    spawn_in(IDLE, name=os.fsdecode(b"odd\xff"))

    assert any(path.endswith("/odd\ufffd/") for path in reader.snapshot(0).threads_by_cgroup)


def test_a_path_too_long_for_the_kernel_side_is_found_by_its_directory(
    open_tier, unified, spawn_in
):
    reader = open_tier(unified_root=str(unified))
    deep = "/".join(str(level) * 240 for level in range(6))
    _, path = spawn_in(IDLE, name=deep)

    rows = reader.snapshot(0)

    assert rows.threads_by_cgroup[engine_path(path)] == 1
    assert len(engine_path(path)) > 240
    assert rows.defects == ()


def test_a_path_that_nobody_can_tell_is_a_defect_and_its_threads_are_counted(open_tier, spawn_in):
    reader = open_tier(unified_root="")
    spawn_in(IDLE, name="/".join(str(level) * 240 for level in range(6)))

    rows = reader.snapshot(0)

    assert rows.threads_by_cgroup[""] == 1
    assert rows.defects == ("threads: 1 cgroups have no name",)


def test_many_cgroups_are_all_named_from_the_first_look_on(open_tier, make_cgroup, sleepers):
    # So many that the trial at opening and one baseline more do not tell them all.
    sleepers(make_cgroup(f"one-of-many-{number}") for number in range(2 * CROWD))
    reader = open_tier(unified_root="")

    living = reader.snapshot(0).threads_by_cgroup

    assert sum("one-of-many" in path for path in living) == 2 * CROWD


def test_many_cgroups_made_between_two_looks_are_all_named(
    open_tier, unified, make_cgroup, sleepers
):
    reader = open_tier(unified_root=str(unified))
    base = reader.snapshot(0)
    sleepers(make_cgroup(f"one-of-many-{number}") for number in range(CROWD))

    rows = reader.snapshot(base.clock_ns)

    assert sum("one-of-many" in path for path in rows.threads_by_cgroup) == CROWD
    assert rows.defects == ()


def test_all_is_named_as_before_after_the_pods_have_changed(watched, reader, spawn_in):
    _, path = spawn_in(IDLE)
    before = watched().threads_by_cgroup[path]

    reader.refresh_cgroups()

    assert (before, watched().threads_by_cgroup[path], watched().threads_by_cgroup[path]) == (
        1,
        1,
        1,
    )


def test_what_is_new_is_named_at_once_although_many_others_have_been_told_of_before(
    open_tier, make_cgroup, sleepers, spawn_in
):
    sleepers(make_cgroup(f"one-of-many-{number}") for number in range(CROWD))
    reader = open_tier(unified_root="")
    base = reader.snapshot(0)

    reader.refresh_cgroups()
    _, path = spawn_in(IDLE)
    rows = reader.snapshot(base.clock_ns)

    assert rows.threads_by_cgroup[path] == 1
    assert rows.defects == ()


def test_names_are_joined_from_the_root_and_incomplete_ones_are_not_believed():
    paths = CgroupPaths("")

    paths.learn([(5, 7, 1, b"b\0a\0\0\0\0leftover"), (6, 1, 1, b"\0"), (7, 2, 0, b"z\0")])

    assert paths.of([5, 6, 7]) == ["a/b/", "/", ""]


def test_paths_of_cgroups_long_gone_are_forgotten_and_asked_for_again(tmp_path):
    paths = CgroupPaths(str(tmp_path))
    paths.learn((number, 2, 1, b"a\0") for number in range(1, MOST_KNOWN + 2))
    asked = paths.names

    kept = paths.of([1, 2])

    assert kept == ["a/", "a/"]
    assert paths.names != asked
    assert paths.of([3]) == [""]


def test_a_cgroup_is_found_by_its_number(unified, make_cgroup):
    inner = make_cgroup("a.slice/b.scope")
    paths = CgroupPaths(str(unified))

    found = paths.of([inner.stat().st_ino, unified.stat().st_ino, 1 << 40])

    assert found == [f"{inner.relative_to(unified)}/", "/", ""]


def test_a_cgroup_outside_of_the_root_has_no_name(make_cgroup):
    root, other = make_cgroup("root.slice"), make_cgroup("root.slice-2")

    assert CgroupPaths(str(root)).of([other.stat().st_ino]) == [""]


def test_a_cgroup_of_thousands_of_levels_hides_no_other(open_tier, unified, make_cgroup, spawn_in):
    # os.walk of Python 3.11 calls itself for each level.
    top = make_cgroup("deep")
    sleeper = subprocess.Popen(["sleep", "600"])
    levels = made_below(top, DEEP)
    try:
        with at(top, levels):
            Path("cgroup.procs").write_text(str(sleeper.pid))
        reader = open_tier(unified_root=str(unified))
        _, path = spawn_in(IDLE)

        living = reader.snapshot(0).threads_by_cgroup
    finally:
        sleeper.kill()
        sleeper.wait()
        for count in range(levels, 0, -1):
            with at(top, count - 1):
                Path("a").rmdir()

    assert living[path] == 1
    assert levels == DEEP


def made_below(top, most):
    """Make directories in each other, at most *most*. Return how many were made."""
    home, made = os.open(".", os.O_DIRECTORY), 0
    try:
        os.chdir(top)
        for _ in range(most):
            os.mkdir("a")  # noqa: PTH102 - the path is too long
            os.chdir("a")
            made += 1
    finally:
        os.fchdir(home)
        os.close(home)
    return made


@contextmanager
def at(top, depth):
    """Work in the directory *depth* levels below *top*."""
    home = os.open(".", os.O_DIRECTORY)
    try:
        os.chdir(top)
        for _ in range(depth):
            os.chdir("a")
        yield
    finally:
        os.fchdir(home)
        os.close(home)


def test_without_the_right_to_open_cgroups_by_number_nothing_fails(monkeypatch, make_cgroup):
    def refuse(_, number):
        raise PermissionError(number)

    monkeypatch.setattr(CgroupHandles, "path_of", refuse)
    inner = make_cgroup("inner")

    assert CgroupPaths(str(inner.parent)).of([inner.stat().st_ino]) == [""]


def test_what_is_found_nowhere_is_not_tried_again_until_there_is_something_new(
    unified, make_cgroup, monkeypatch
):
    opened = []
    open_one = CgroupHandles.path_of
    monkeypatch.setattr(
        CgroupHandles, "path_of", lambda self, n: opened.append(n) or open_one(self, n)
    )
    paths, lost = CgroupPaths(str(unified)), 1 << 40
    late = make_cgroup("late.slice")

    found = [paths.of(wanted) for wanted in ([lost], [lost], [lost, late.stat().st_ino])]

    assert found == [[""], [""], ["", f"{late.relative_to(unified)}/"]]
    assert opened == [lost, late.stat().st_ino]
