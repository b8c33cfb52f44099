"""Demand while the state disk hangs: it goes on in memory, and to the disk once that answers."""

import threading

import pytest
from structlog.testing import capture_logs

from temper_core import (
    Assignment,
    Container,
    DiskThread,
    LayerPlan,
    MachineError,
    SilentDiskError,
    Tier,
)
from temper_core.records.snapshots import PodSample
from temper_core.testing import MadeContext, make_machine, make_pod, make_snapshot, make_thread
from temper_plugin_rightsizer.commands.showing import Showing, show_report
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.node import document
from temper_plugin_rightsizer.node.cgroup_counters import CgroupFiles
from temper_plugin_rightsizer.node.collector import INTERVAL_S, Collector
from temper_plugin_rightsizer.node.instrument import Rightsizer
from temper_plugin_rightsizer.options import Options
from temper_plugin_rightsizer.store import history, unwritten
from temper_plugin_rightsizer.store.history import HOUR_S, History
from temper_plugin_rightsizer.store.keeper import Keeper
from tests.control_plane.cluster import wait_until
from tests.patience import PATIENCE_S
from tests.rightsizer.at_once import AtOnce

NOW = 1_800_000_000 // HOUR_S * HOUR_S
APP = "a" * 64
POD = make_pod("web", "shop", cgroups=("pod/",), containers=(Container("app", runtime_id=APP),))
KEY = ContainerKey(POD.uid, "shop", "web", "app")
SILENT = "the disk of the history has not answered since 20"


class Disk:
    """The state directory at *folder*, whose disk hangs or refuses when it is told to."""

    def __init__(self, folder):
        self._folder = folder
        self.root = folder / "cgroup"
        (self.root / "pod" / APP).mkdir(parents=True)
        self._answers = threading.Event()
        self._answers.set()
        self.refuses = False

    def hang(self):
        self._answers.clear()

    def answer(self):
        self._answers.set()

    def directory(self):
        if not self._answers.wait(PATIENCE_S):
            raise MachineError("nobody let the disk answer")
        if self.refuses:
            raise MachineError("the disk is full")
        return self._folder


@pytest.fixture
def disk(tmp_path, monkeypatch):
    monkeypatch.setattr("temper_core.disk_thread.ANSWER_S", 0.05)
    made = Disk(tmp_path)
    yield made
    made.answer()


def collector_on(disk, thread=None):
    plan = LayerPlan(make_machine(), (), assignments=(Assignment(POD, Tier.NORMAL, "priority"),))
    kept_there = History(disk.directory, 4 << 20, clock=lambda: NOW)
    keeper = Keeper(kept_there, thread or DiskThread("the history"))
    return Collector(keeper, MadeContext(plan=plan).lookup, CgroupFiles(disk.root))


@pytest.fixture
def collector(disk):
    return collector_on(disk)


def tell(collector, interval):
    """Let an interval begin, with one window of 10 s."""
    second = interval * INTERVAL_S
    thread = make_thread("hot-1", namespace="shop", pod="web", container="app", cpu_used=0.9)
    moment = {"at": float(NOW + second), "monotonic_s": 1000.0 + second, "window_s": 10.0}
    pod = PodSample("shop", "web", POD.uid, Tier.NORMAL, 1, 0.9)
    collector.tell(make_snapshot(thread, pods=(pod,), **moment))


def at_rest(collector):
    """Wait until the disk has all that was given to it."""

    def has_answered():
        try:
            collector.keeper.disk.ask(lambda: None)
        except SilentDiskError:
            return False
        return True

    wait_until(has_answered, "an answer of the disk", PATIENCE_S)


def kept(disk):
    """Return the begins of the kept intervals, and the measured seconds in them."""
    own = History(disk.directory, 4 << 20, clock=lambda: NOW)
    rows = [(at - NOW, demand.cpu.seconds) for key, at, demand in own.intervals(0) if key == KEY]
    return sorted(rows)


def test_no_look_waits_for_the_disk_and_no_interval_is_lost(collector, disk):
    tell(collector, 0)
    at_rest(collector)
    disk.hang()

    for interval in range(1, 4):
        tell(collector, interval)
    disk.answer()
    at_rest(collector)
    tell(collector, 4)
    at_rest(collector)

    assert sum(seconds for _, seconds in kept(disk)) == 40


def test_a_report_meanwhile_has_what_is_in_memory_and_says_so(collector, disk):
    for interval in range(2):
        tell(collector, interval)
        at_rest(collector)
    disk.hang()
    for interval in range(2, 5):
        tell(collector, interval)

    report = document.report(collector, HOUR_S, NOW + 5 * INTERVAL_S)

    assert report["is_incomplete"]
    assert report["notes"][0].startswith(SILENT)
    assert report["notes"][0].endswith("the report has only the demand that is not written yet")
    assert [row["learned_s"] for row in report["containers"]] == [40]


def test_a_report_is_whole_once_the_disk_answers(collector, disk):
    for interval in range(2):
        tell(collector, interval)
        at_rest(collector)
    disk.hang()
    tell(collector, 2)
    with pytest.raises(SilentDiskError):
        collector.keeper.disk.ask(lambda: None)
    disk.answer()
    at_rest(collector)

    report = document.report(collector, HOUR_S, NOW + 3 * INTERVAL_S)

    assert not report["is_incomplete"]
    assert [row["learned_s"] for row in report["containers"]] == [30]


def test_a_disk_that_hangs_is_a_defect_until_it_answers(collector, disk):
    tell(collector, 0)
    at_rest(collector)
    before = collector.keeper.defect
    disk.hang()
    tell(collector, 1)
    wait_until(lambda: collector.keeper.defect, "the defect", PATIENCE_S)
    during = collector.keeper.defect

    disk.answer()
    at_rest(collector)

    assert (before, collector.keeper.defect) == ("", "")
    assert during.startswith(SILENT)


def test_hours_are_not_filled_in_while_the_disk_hangs(collector, disk):
    disk.hang()

    with pytest.raises(MachineError, match=SILENT):
        collector.fill(HOUR_S, ())


def test_an_agent_that_ends_does_not_wait_for_the_disk(collector, disk):
    tell(collector, 0)
    disk.hang()

    collector.close()

    assert collector.keeper.defect.startswith(SILENT)


def test_an_interval_that_a_full_disk_refuses_is_written_once_there_is_room(disk):
    collector = collector_on(disk, thread=AtOnce())
    tell(collector, 0)
    disk.refuses = True
    tell(collector, 1)
    during = collector.keeper.defect
    disk.refuses = False

    tell(collector, 2)

    assert (during, collector.keeper.defect) == ("the disk is full", "")
    assert sum(seconds for _, seconds in kept(disk)) == 20


def test_a_bug_on_the_disk_thread_is_told_until_a_turn_succeeds(collector, disk, monkeypatch):
    tell(collector, 0)
    at_rest(collector)
    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr(history, "pack", lambda _: 1 / 0)
        tell(collector, 1)
        at_rest(collector)
        defect = collector.keeper.defect
        during = document.report(collector, HOUR_S, NOW + 2 * INTERVAL_S)

    tell(collector, 2)
    at_rest(collector)

    after = document.report(collector, HOUR_S, NOW + 3 * INTERVAL_S)
    assert defect == "the history is not kept: ZeroDivisionError('division by zero')"
    assert (during["is_incomplete"], during["notes"][0]) == (True, defect)
    assert [line["event"] for line in logs] == ["disk_job_failed"]
    assert (after["is_incomplete"], collector.keeper.defect) == (False, "")
    assert sum(seconds for _, seconds in kept(disk)) == 20


def test_a_second_try_adds_nothing_twice(disk):
    """The file may have the interval already, of the agent before."""
    collector = collector_on(disk, thread=AtOnce())
    tell(collector, 0)
    collector.close()
    again = collector_on(disk, thread=AtOnce())
    tell(again, 0)
    demands = dict(again.demands(HOUR_S, NOW + 10))

    again.keeper.history.add(NOW, INTERVAL_S, demands)

    assert demands[KEY].cpu.seconds == 20


def test_the_last_hours_stay_in_memory_and_older_ones_are_forgotten(disk, monkeypatch):
    monkeypatch.setattr(unwritten, "MOST_HOURS", 2)
    collector = collector_on(disk, thread=AtOnce())
    disk.refuses = True
    for interval in range(37):
        tell(collector, interval)
    disk.refuses = False

    tell(collector, 37)

    hours = [(HOUR_S, 120), (2 * HOUR_S, 120), (3 * HOUR_S, 10)]
    assert kept(disk) == hours[-2:]


def test_without_a_thread_intervals_wait(disk, monkeypatch):
    def no_thread(*_):
        raise RuntimeError("can't start new thread")

    collector = collector_on(disk)
    with monkeypatch.context() as patched:
        patched.setattr("temper_core.disk_thread._thread.start_new_thread", no_thread)
        for interval in range(2):
            tell(collector, interval)
        during = collector.keeper.defect
    tell(collector, 2)
    at_rest(collector)

    assert during == "no thread for the history: can't start new thread"
    assert sum(seconds for _, seconds in kept(disk)) == 20


def test_a_rightsizer_that_is_no_longer_told_says_so(disk, capsys):
    collector = collector_on(disk, thread=AtOnce())
    rightsizer = Rightsizer(collector, Options())
    rightsizer.tell(make_snapshot(at=float(NOW), monotonic_s=1000.0))

    rightsizer.let_go()

    (told,) = rightsizer.defects()
    report = document.report(collector, HOUR_S, NOW)
    assert told == "nothing is learned since 2027-01-15T08:00:00.000Z; restart the agent"
    assert (report["is_incomplete"], report["notes"][0]) == (True, told)
    show_report(report, Showing("table", True, False, None, None))
    printed = capsys.readouterr()
    assert (printed.out, printed.err.splitlines()[0]) == ("no demand is known\n", f"note: {told}")
