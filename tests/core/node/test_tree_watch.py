import contextlib
import errno
import os
import select
import time
from pathlib import Path

import pytest

from temper_core.file_watch.inotify import Inotify
from temper_core.node.cgroups import CgroupTree, detect_cgroups
from temper_core.node.tree_watch import RETRY_S, TreeNews, TreeWatch
from tests.core.node.trees import make_cgroup, make_hierarchy
from tests.patience import PATIENCE_S

MOST_QUEUED = 50_000


@pytest.fixture
def watch():
    watch = TreeWatch()
    yield watch
    watch.close()


@pytest.fixture
def tree(watch, tmp_path):
    """A made-up hierarchy that is watched, with one unit in it."""
    tree = CgroupTree(make_hierarchy(tmp_path, ["system.slice/a.service"]), watch=watch)
    tree.refresh()
    return tree


def test_nothing_is_heard_of_a_hierarchy_in_which_nothing_happens(tree, watch):
    assert tree.refresh() is False

    assert watch.take() == TreeNews()


@pytest.mark.parametrize("parent", ["", "system.slice/", "system.slice/a.service/"])
def test_a_new_cgroup_is_heard_wherever_it_is(tree, watch, parent):
    make_cgroup(tree.root, f"{parent}new")

    assert watch.take() == TreeNews(shape=True)
    assert watch.take() == TreeNews()


def test_a_cgroup_that_is_found_by_a_refresh_is_watched_from_then_on(tree, watch):
    make_cgroup(tree.root, "one")
    watch.take()
    tree.refresh()

    make_cgroup(tree.root, "one/two")

    assert watch.take().shape


def test_a_cgroup_that_goes_is_heard_and_forgotten(tree, watch):
    (tree.root / "system.slice/a.service").rmdir()

    assert watch.take().shape
    tree.refresh()
    assert watch.take() == TreeNews()


@pytest.mark.parametrize("file", ["cpu.max", "cpu.weight", "cgroup.events"])
def test_a_written_value_names_its_cgroup(tree, watch, file):
    unit = tree.root / "system.slice/a.service"
    (unit / file).touch()
    watch.take()

    (unit / file).write_text("50000 100000\n")

    assert watch.take() == TreeNews(values=frozenset({"system.slice/a.service"}))


def test_a_note_on_a_cgroup_names_it(tree, watch):
    os.setxattr(tree.root / "system.slice/a.service", "user.temper.cpu_limit_millis", b"1")

    assert watch.take().values == {"system.slice/a.service"}


def test_a_process_that_is_moved_is_no_reason_to_look_but_for_its_cgroups_main_process(tree, watch):
    procs = tree.root / "system.slice/a.service/cgroup.procs"
    procs.touch()
    watch.take()

    procs.write_text("1\n")

    news = watch.take()
    assert not news
    assert news.processes == {"system.slice/a.service"}


def test_files_that_say_nothing_about_pods_are_not_heard_of(tree, watch):
    file = tree.root / "system.slice/a.service/memory.reclaim"
    file.touch()
    watch.take()

    file.write_text("1M\n")

    assert watch.take() == TreeNews()


def test_after_more_than_can_be_queued_all_may_have_changed_and_what_has_gone_is_forgotten(
    tree, watch
):
    make_cgroup(tree.root, "going")
    watch.take()
    tree.refresh()
    overflow(tree.root)
    (tree.root / "going").rmdir()

    news, after = watch.take(), watch.take()

    assert news.shape
    assert {"system.slice/a.service", "going"} <= news.values & news.processes
    assert after == TreeNews()
    overflow(tree.root)
    assert "going" not in watch.take().values


def overflow(folder):
    """Let more happen than the kernel keeps until it is read."""
    queued = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if queued > MOST_QUEUED:
        pytest.skip(f"needs {queued} events to overflow")
    with (folder / "tick").open("wb", 0) as tick, (folder / "tock").open("wb", 0) as tock:
        for _ in range(queued // 2 + 1):  # two by turns: the kernel takes like events together
            tick.write(b"!")
            tock.write(b"!")


def test_a_watch_that_has_ended_says_that_it_hears_nothing_and_everything_may_have_changed(watch):
    watch.close()

    assert (watch.is_complete, watch.fileno(), watch.take().shape) == (False, -1, True)


real = detect_cgroups().unified


@pytest.mark.skipif(
    real is None or not os.access(real, os.W_OK), reason="needs a writable cgroup v2 hierarchy"
)
def test_the_kernels_own_hierarchy_tells_of_cgroups_values_and_the_last_process(watch, sleeper):
    own = real / f"temper-test-{os.getpid()}"
    tree = CgroupTree(real, watch=watch)
    tree.refresh()
    heard = []

    own.mkdir()
    try:
        heard.append(watch.take().shape)
        tree.refresh()
        (own / "cgroup.events").read_text()
        (own / "cgroup.procs").write_text(str(sleeper.pid))
        heard.append(own.name in watch.take().processes)
        sleeper.kill()
        sleeper.wait()
        heard.append(own.name in values_heard(watch))
    finally:
        _emptied(own)
    heard.append(watch.take().shape)

    assert heard == [True, True, True, True]


@pytest.mark.skipif(
    real is None or not os.access(real, os.W_OK), reason="needs a writable cgroup v2 hierarchy"
)
def test_cgroups_that_have_gone_leave_no_watch_behind(watch):
    top = real / f"temper-test-{os.getpid()}"
    tree = CgroupTree(top, watch=watch)
    counted = []

    top.mkdir()
    try:
        tree.refresh()
        counted.append(watches_of(watch))
        for _ in range(3):
            (top / "pod/container").mkdir(parents=True)
            tree.refresh()
            counted.append(watches_of(watch))
            (top / "pod/container").rmdir()
            (top / "pod").rmdir()
        tree.refresh()
        counted.append(watches_of(watch))
    finally:
        _emptied(top)

    assert counted == [1, 3, 3, 3, 1]


def watches_of(watch):
    """Count the watches that the kernel holds."""
    told = Path(f"/proc/self/fdinfo/{watch.fileno()}").read_text()
    return sum(line.startswith("inotify wd:") for line in told.splitlines())


def values_heard(watch):
    """Wait for the next values that are told: the kernel does so a moment after the event."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        select.select([watch.fileno()], [], [], 1)
        if values := watch.take().values:
            return values
    return frozenset()


def _emptied(cgroup):
    deadline = time.monotonic() + PATIENCE_S
    while cgroup.exists() and time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # the kernel has not let go of the process yet
            cgroup.rmdir()


class Crowded(Inotify):
    """Has room for so many watches, as where others have used up the limit."""

    room = 0

    def watch(self, directory, changes):
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device", directory)
        type(self).room -= 1
        return super().watch(directory, changes)


@pytest.fixture
def crowd():
    """Return a kind of inotify whose ``room`` can be set, with a clock that can be put on."""

    class Crowd(Crowded):
        now = 1000.0

    return Crowd


def test_what_reached_a_limit_is_tried_again_and_then_all_is_heard(crowd, tmp_path):
    crowd.room = 2
    watch = TreeWatch(crowd, clock=lambda: crowd.now)
    tree = CgroupTree(make_hierarchy(tmp_path, ["system.slice/a.service"]), watch=watch)
    tree.refresh()
    make_cgroup(tree.root, "late")
    make_cgroup(tree.root, "gone")
    tree.refresh()
    (tree.root / "gone").rmdir()
    crowd.room = 100
    told = [(watch.is_complete, watch.take())]

    crowd.now += RETRY_S
    told.append((watch.is_complete, watch.take()))
    quiet = watch.take()
    make_cgroup(tree.root, "late/new")
    heard = watch.take()
    watch.close()

    paths = frozenset({"", "system.slice", "system.slice/a.service", "late"})
    assert told == [(False, TreeNews(shape=True)), (False, TreeNews(True, paths, paths))]
    assert (quiet, heard) == (TreeNews(), TreeNews(shape=True))


def test_a_limit_that_still_stands_is_not_tried_all_the_time(crowd, tmp_path):
    watch = TreeWatch(crowd, clock=lambda: crowd.now)
    watch.add(str(tmp_path), "")
    crowd.now += RETRY_S
    watch.take()
    crowd.room = 100
    soon = (watch.take(), watch.is_complete)

    crowd.now += RETRY_S
    watch.take()

    assert soon == (TreeNews(shape=True), False)
    assert watch.is_complete
    watch.close()
    watch.take()
    assert not watch.is_complete


def test_where_nothing_can_be_heard_at_first_it_is_later(tmp_path):
    now = [0.0]

    def listen():
        if not now[0]:
            raise OSError(errno.EMFILE, "Too many open files")
        return Inotify()

    watch = TreeWatch(listen, clock=lambda: now[0])
    watch.add(str(tmp_path), "")
    before = watch.fileno()

    now[0] += RETRY_S
    watch.take()
    (tmp_path / "new").mkdir()

    assert before == -1
    assert watch.take().shape
    watch.close()
