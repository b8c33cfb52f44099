"""Threads that do not follow, and a real one that is reniced and gets its value back."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from temper_core.steering.kicking import (
    Kicker,
    MisplacedThread,
    may_renice,
    renice_and_back,
)
from temper_core.steering.thread_identity import NS_PER_TICK


class Kicks(list):
    def __call__(self, tid, _start_ns):
        self.append(tid)
        return True


@pytest.fixture
def spinner():
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield child
    child.kill()
    child.wait()


def start_of(pid):
    """Return when a process started, in nanoseconds since boot, as exactly as /proc tells it."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[19]) * NS_PER_TICK


def stray(run_ns, tid=7, start_ns=1):
    return MisplacedThread(tid, start_ns, run_ns)


def test_a_thread_that_ran_in_two_walks_and_did_not_follow_is_kicked():
    kicks = Kicks()
    kicker = Kicker(kicks)

    for now, run_ns in enumerate([10, 20, 30]):
        kicker.look([stray(run_ns)], float(now))

    assert kicks == [7]
    assert kicker.kicked == 1


def test_a_thread_that_sleeps_is_left_until_it_runs():
    kicks = Kicks()
    kicker = Kicker(kicks)

    is_soon = [kicker.look([stray(10)], float(now)) for now in range(10)]

    assert kicks == []
    assert is_soon == [True] + [False] * 9


def test_a_thread_that_followed_meanwhile_begins_anew():
    kicks = Kicks()
    kicker = Kicker(kicks)

    for now, strays in enumerate([[stray(1)], [stray(2)], [], [stray(3)], [stray(4)]]):
        kicker.look(strays, float(now))

    assert kicks == []


def test_another_thread_of_the_same_tid_begins_anew():
    kicks = Kicks()
    kicker = Kicker(kicks)

    for now in range(4):
        kicker.look([stray(now, start_ns=now // 2)], float(now))

    assert kicks == []


def test_kicks_that_do_not_help_become_rarer():
    kicks = Kicks()
    kicker = Kicker(kicks)

    for now in range(120):
        kicker.look([stray(now)], float(now))

    assert 4 <= len(kicks) <= 8


def test_a_thread_that_may_not_be_kicked_is_not_counted():
    kicker = Kicker(lambda _tid, _start_ns: False)

    for now in range(5):
        kicker.look([stray(now)], float(now))

    assert kicker.kicked == 0


def test_whoever_is_due_soon_asks_for_a_soon_look_and_the_hopeless_do_not():
    kicker = Kicker(Kicks())

    is_soon = [kicker.look([stray(now)], float(now)) for now in range(3)]

    assert is_soon == [True, True, False]
    assert not kicker.look([], 5.0)


@pytest.mark.parametrize("nice", [0, 5, 19])
def test_a_real_spinning_thread_has_its_nice_value_back(spinner, nice):
    os.setpriority(os.PRIO_PROCESS, spinner.pid, nice)

    assert renice_and_back(spinner.pid, start_of(spinner.pid))
    assert os.getpriority(os.PRIO_PROCESS, spinner.pid) == nice
    assert spinner.poll() is None


def test_a_thread_that_has_gone_is_no_error(spinner):
    start_ns = start_of(spinner.pid)
    spinner.kill()
    spinner.wait()

    assert not renice_and_back(spinner.pid, start_ns)


@pytest.mark.parametrize("apart_s", [-1, 1])
def test_another_thread_that_took_the_number_is_left_alone(spinner, monkeypatch, apart_s):
    start_ns = start_of(spinner.pid) + apart_s * 1_000_000_000
    touched = []
    monkeypatch.setattr(os, "setpriority", lambda *given: touched.append(given))

    assert not renice_and_back(spinner.pid, start_ns)
    assert touched == []


def test_a_value_that_cannot_be_set_changes_nothing(spinner, monkeypatch):
    before = os.getpriority(os.PRIO_PROCESS, spinner.pid)

    def refuse(*_given):
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)

    assert not renice_and_back(spinner.pid, start_of(spinner.pid))
    assert os.getpriority(os.PRIO_PROCESS, spinner.pid) == before


def test_an_owner_who_sets_another_value_meanwhile_keeps_it(spinner, monkeypatch):
    really = os.setpriority

    def set_and_be_overtaken(which, tid, _value):
        really(which, tid, 17)

    monkeypatch.setattr(os, "setpriority", set_and_be_overtaken)

    renice_and_back(spinner.pid, start_of(spinner.pid))

    assert os.getpriority(os.PRIO_PROCESS, spinner.pid) == 17


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("CapEff:\t000001ffffffffff\n", True),
        ("CapEff:\t0000000000000000\n", False),
        ("Name:\tx\nCapEff:\t0000000000800000\n", True),
        ("", False),
    ],
)
def test_the_right_to_take_a_value_back_is_read_from_the_capabilities(tmp_path, text, may):
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text(text)

    assert may_renice(tmp_path) is may


def test_without_proc_no_thread_is_kicked(tmp_path):
    assert not may_renice(tmp_path)
