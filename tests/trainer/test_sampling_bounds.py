"""What a recording keeps of processes that begin threads and change names without end."""

import gc
import os
import shutil
import tracemalloc

import pytest

from temper_plugin_trainer import sampling
from temper_plugin_trainer.sampling import ThreadSampler

ROOT = 100
PARENT = 99
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
NS_PER_TICK = 1_000_000_000 // TICKS_PER_S
LOOK_S = 0.5


class Node:
    """A /proc of made-up processes, which is also their source and their clock."""

    def __init__(self, folder):
        self.folder = folder
        self.now_s = 1_000.0
        self.pids = set()
        (folder / "self").symlink_to("/proc/self")
        self.sampler = ThreadSampler(self, proc_root=folder, clock=lambda: self.now_s)

    def processes(self):
        return dict.fromkeys(self.pids, "")

    def look(self):
        self.sampler.look()
        self.now_s += LOOK_S

    def put_process(self, pid, *, used=0, title="shop", start_s=1.0):
        """Put a process whose CPU time, with that of reaped children, is *used* ticks."""
        self.pids.add(pid)
        (self.folder / f"{pid}" / "task").mkdir(parents=True, exist_ok=True)
        words = ["S", PARENT, *["0"] * 9, used, *["0"] * 7, int(start_s * TICKS_PER_S), *["0"] * 9]
        stat = f"{pid} (shop) {' '.join(map(str, words))}\n"
        (self.folder / f"{pid}" / "stat").write_text(stat)
        (self.folder / f"{pid}" / "cmdline").write_text(title)

    def put_thread(self, pid, tid, *, used=0, name="w", start_s=1.0):
        """Put a thread that used so many ticks."""
        home = self.folder / f"{pid}" / "task" / f"{tid}"
        home.mkdir(exist_ok=True)
        (home / "schedstat").write_text(f"{used * NS_PER_TICK} 0 1\n")
        (home / "comm").write_text(f"{name}\n")
        words = ["S", PARENT, *["0"] * 17, int(start_s * TICKS_PER_S), *["0"] * 9]
        (home / "stat").write_text(f"{tid} (w) {' '.join(map(str, words))}\n")

    def end_thread(self, pid, tid):
        shutil.rmtree(self.folder / f"{pid}" / "task" / f"{tid}")

    def end_process(self, pid):
        self.pids.remove(pid)
        shutil.rmtree(self.folder / f"{pid}")

    def seen(self):
        return list(self.sampler.seen())


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    made.put_process(ROOT)
    made.put_thread(ROOT, ROOT)
    yield made
    made.sampler.close()


def bound(monkeypatch, **constants):
    for name, value in constants.items():
        monkeypatch.setattr(sampling, name, value)


def kept_bytes():
    """Return what the plugin's own lines have allocated and is still kept."""
    gc.collect()
    mine = tracemalloc.Filter(inclusive=True, filename_pattern="*/temper_plugin_trainer/*")
    kept = tracemalloc.take_snapshot().filter_traces([mine])
    return sum(row.size for row in kept.statistics("filename"))


def test_a_thread_that_renames_itself_without_end_has_its_first_names(node, monkeypatch):
    bound(monkeypatch, MOST_NAMES=4)

    for number in range(20):
        node.put_thread(ROOT, ROOT, name=f"n-{number}")
        node.look()

    (thread,) = node.seen()
    assert (thread.comm, *thread.names) == ("n-0", "n-1", "n-2", "n-3")


def test_a_known_name_still_counts_when_there_is_room_for_no_other(node, monkeypatch):
    bound(monkeypatch, MOST_NAMES=2)

    for name in ("a", "b", "c", "c", "c", "b"):
        node.put_thread(ROOT, ROOT, name=name)
        node.look()

    (thread,) = node.seen()
    assert (thread.comm, thread.names) == ("b", ("a",))


def test_a_process_that_changes_its_title_without_end_has_one_of_its_first(node, monkeypatch):
    bound(monkeypatch, MOST_TITLES=2)

    for title in ("shop 1", "shop 2", "shop 3", "shop 3", "shop 3", "shop 2"):
        node.put_process(ROOT, title=title)
        node.look()

    assert [thread.title for thread in node.seen()] == ["shop 2"]


def test_titles_names_and_threads_without_end_take_no_more_memory(node, monkeypatch):
    bound(monkeypatch, MOST_NAMES=4, MOST_TITLES=4, MOST_ENDED_THREADS=10, MOST_ENDED_PROCESSES=5)

    def churn(rounds):
        for number in rounds:
            pid, tid = 1_000 + number, 5_000 + number
            node.put_process(ROOT, title=f"{number} " + 1_000 * "\N{GRINNING FACE}")
            node.put_process(pid, title=f"{number} " + 1_000 * "x", start_s=node.now_s)
            node.put_thread(pid, pid, start_s=node.now_s)
            node.put_thread(ROOT, tid, name=f"n-{number}", start_s=node.now_s)
            node.look()
            node.end_process(pid)
            node.end_thread(ROOT, tid)
        return kept_bytes()

    tracemalloc.start()
    try:
        early = churn(range(20))
        late = churn(range(20, 220))
    finally:
        tracemalloc.stop()

    # Without bounds the titles of ROOT alone take 800 kB.
    assert late - early < 100_000


def test_ended_threads_beyond_the_bound_are_unseen_with_their_cpu_time(node, monkeypatch):
    bound(monkeypatch, MOST_ENDED_THREADS=3)
    node.look()

    for number in range(10):
        node.put_thread(ROOT, 200 + number, used=5, start_s=node.now_s)
        node.put_process(ROOT, used=5 * (number + 1))
        node.now_s += 1
        node.look()
        node.end_thread(ROOT, 200 + number)
    node.look()

    assert sorted(thread.tid for thread in node.seen()) == [ROOT, 200, 201, 202]
    unseen_s = node.sampler.unseen_cpus * node.sampler.seconds
    assert unseen_s == pytest.approx(7 * 5 / TICKS_PER_S)


def test_ended_processes_beyond_the_bound_are_unseen_with_their_new_cpu_time(node, monkeypatch):
    bound(monkeypatch, MOST_ENDED_PROCESSES=2)
    children = range(300, 306)
    for pid in children:
        node.put_process(pid, used=1_000)
        node.put_thread(pid, pid, used=1_000)
    node.look()
    for pid in children:
        node.put_process(pid, used=1_007)
        node.put_thread(pid, pid, used=1_007)
    node.look()
    for pid in children:
        node.end_process(pid)
    # The parent has reaped them, with what they used before the recording.
    node.put_process(ROOT, used=6 * 1_007)

    node.look()

    assert sorted(thread.pid for thread in node.seen()) == [ROOT, 300, 301]
    unseen_s = node.sampler.unseen_cpus * node.sampler.seconds
    assert unseen_s == pytest.approx(4 * 7 / TICKS_PER_S)


def test_an_ended_process_beyond_the_bound_leaves_room_for_other_threads(node, monkeypatch):
    bound(monkeypatch, MOST_ENDED_PROCESSES=0, MOST_ENDED_THREADS=2)
    node.put_process(300)
    for tid in (300, 301, 302):
        node.put_thread(300, tid)
    node.put_thread(ROOT, 201)
    node.look()
    node.look()
    node.end_thread(300, 301)
    node.end_thread(300, 302)
    node.look()
    node.end_process(300)
    node.look()

    node.end_thread(ROOT, 201)
    node.look()

    assert sorted(thread.tid for thread in node.seen()) == [ROOT, 201]


def test_an_ended_process_keeps_its_first_threads_as_far_as_there_is_room(node, monkeypatch):
    bound(monkeypatch, MOST_ENDED_THREADS=2)
    node.put_process(300, title="child")
    for tid in (300, 301, 302):
        node.put_thread(300, tid)
    node.look()
    node.look()

    node.end_process(300)
    node.look()

    ended = [thread for thread in node.seen() if thread.pid == 300]
    assert len(ended) == 2
    assert {thread.title for thread in ended} == {"child"}
