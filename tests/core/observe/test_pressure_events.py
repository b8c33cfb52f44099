import os
import threading
import time
from pathlib import Path

import pytest

from temper_core.observe.pressure_events import PressureEvents
from tests.patience import PATIENCE_S

BUSY = "import os; os.sched_setaffinity(0, {0}); print('up', flush=True)\nwhile True: pass"


@pytest.fixture
def events():
    """Make triggers that are taken back afterwards."""
    made = []

    def make(*arguments):
        made.append(PressureEvents(*arguments))
        return made[-1]

    yield make
    for each in made:
        each.close()


def need_triggers():
    if not Path("/proc/pressure/cpu").exists():
        pytest.skip("this kernel has no PSI")


def test_threads_that_fight_for_a_cpu_are_an_event_of_that_resource(events, spawn, wait_until):
    need_triggers()
    rung = threading.Event()
    listening = events("/proc", rung.set)
    listening.listen()

    for _ in range(2):
        spawn(BUSY)
    wait_until(lambda: listening.counts["cpu"], "no trigger has fired")

    assert rung.wait(PATIENCE_S)
    assert set(listening.counts) == {"cpu", "io", "memory"}
    assert listening.defects == ()


def test_only_the_first_wait_after_a_calm_rings(events, spawn, wait_until):
    need_triggers()
    rings = []
    listening = events("/proc", lambda: rings.append(time.monotonic()))
    listening.listen()

    for _ in range(2):
        spawn(BUSY)
    wait_until(lambda: listening.counts["cpu"] >= 2, "the trigger has not fired twice")

    assert len(rings) == 1
    assert (listening.rang(), listening.rang()) == (True, False)


def test_triggers_work_without_any_privilege():
    need_triggers()
    if os.geteuid() != 0:
        pytest.skip("only root can become nobody")

    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setuid(65534)
            has_all = set(PressureEvents().counts) == {"cpu", "io", "memory"}
            os._exit(0 if has_all else 1)
        finally:
            os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_kernel_without_pressure_has_no_events_and_needs_no_thread(tmp_path, events):
    before = threading.active_count()
    listening = events(tmp_path)

    listening.listen()

    assert (listening.counts, listening.defects) == ({}, ())
    assert threading.active_count() == before


def test_a_kernel_without_triggers_says_so(tmp_path, events):
    folder = tmp_path / "pressure"
    folder.mkdir()
    (folder / "cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
    before = (folder / "cpu").read_text()

    listening = events(tmp_path)

    assert listening.defects == ("pressure events: cpu: is no file of the kernel",)
    assert (folder / "cpu").read_text() == before


def test_closing_leaves_neither_thread_nor_descriptor(names_in):
    need_triggers()
    before, threads = len(names_in("/proc/self/fd")), threading.active_count()
    listening = PressureEvents()
    listening.listen()
    during = len(names_in("/proc/self/fd"))

    listening.close()

    assert during > before
    assert len(names_in("/proc/self/fd")) == before
    assert threading.active_count() == threads
