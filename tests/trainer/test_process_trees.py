"""The processes of a tree, in a made-up /proc whose numbers are taken again."""

import pytest

from temper_plugin_trainer.process_trees import ProcessTrees

ROOT, CHILD, OTHER = 40, 43, 50


class Proc:
    """A /proc of processes with a parent and a start."""

    def __init__(self, folder):
        self.folder = folder
        self.start_ticks = 100

    def begin(self, pid, parent):
        """Begin a process, later than all before."""
        self.start_ticks += 10
        (self.folder / f"{pid}").mkdir()
        self.reparent(pid, parent, self.start_ticks)

    def reparent(self, pid, parent, start_ticks=None):
        home = self.folder / f"{pid}" / "stat"
        start = start_ticks or int(home.read_text().split()[-1])
        words = ["S", parent, *["0"] * 17, start]
        home.write_text(f"{pid} (a) b) {' '.join(map(str, words))}\n")

    def end(self, pid):
        (self.folder / f"{pid}" / "stat").unlink()
        (self.folder / f"{pid}").rmdir()


@pytest.fixture
def proc(tmp_path):
    made = Proc(tmp_path)
    made.begin(1, 0)
    made.begin(ROOT, 1)
    made.begin(CHILD, ROOT)
    return made


@pytest.fixture
def trees(proc):
    watched = ProcessTrees([ROOT], proc.folder)
    assert watched.processes().keys() == {ROOT, CHILD}
    return watched


def test_a_process_that_took_the_number_of_an_ended_member_is_none(proc, trees):
    proc.end(CHILD)
    proc.begin(CHILD, 1)

    assert trees.processes().keys() == {ROOT}


def test_its_children_are_none_either(proc, trees):
    proc.end(CHILD)
    proc.begin(CHILD, 1)
    proc.begin(OTHER, CHILD)

    assert trees.processes().keys() == {ROOT}


def test_a_process_that_took_the_number_of_the_root_is_none(proc, trees):
    proc.end(ROOT)
    proc.reparent(CHILD, 1)
    proc.begin(ROOT, 1)

    assert trees.processes().keys() == {CHILD}


def test_a_new_child_that_took_the_number_of_an_ended_member_is_one(proc, trees):
    proc.end(CHILD)
    proc.begin(CHILD, ROOT)

    assert trees.processes().keys() == {ROOT, CHILD}


def test_an_orphan_is_none_if_a_member_took_the_number_of_its_parent(proc, trees):
    proc.begin(OTHER, 1)
    proc.begin(OTHER + 1, OTHER)
    trees.processes()
    proc.end(OTHER)
    proc.reparent(OTHER + 1, 1)
    trees.processes()
    proc.begin(OTHER, ROOT)

    assert trees.processes().keys() == {ROOT, CHILD, OTHER}


def test_a_member_whose_parent_ended_stays_one_with_its_later_children(proc, trees):
    proc.end(ROOT)
    proc.reparent(CHILD, 1)
    trees.processes()
    proc.begin(OTHER, CHILD)

    assert trees.processes().keys() == {CHILD, OTHER}


def test_a_process_that_ends_while_it_is_looked_at_is_none(proc, trees):
    (proc.folder / f"{CHILD}" / "stat").unlink()

    assert trees.processes().keys() == {ROOT}
