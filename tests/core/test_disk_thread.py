"""Jobs on the thread that uses a disk for others: their order, their errors, and their silence."""

import threading

import pytest
from structlog.testing import capture_logs

from temper_core import DiskThread, SilentDiskError
from tests.control_plane.cluster import wait_until
from tests.patience import PATIENCE_S


def test_a_job_behind_one_with_a_bug_is_done():
    has_both = threading.Event()
    thread, answers = DiskThread("the history"), []

    def fail():
        has_both.wait(PATIENCE_S)
        raise ZeroDivisionError

    with capture_logs() as logs:
        thread.begin(fail)
        thread.begin(lambda: answers.append("answer"))
        has_both.set()
        wait_until(lambda: answers, "the later job", PATIENCE_S)

    assert [line["event"] for line in logs] == ["disk_job_failed"]


def test_who_asks_gets_the_error_of_the_job():
    with pytest.raises(ZeroDivisionError):
        DiskThread("the history").ask(lambda: 1 / 0)


def test_a_job_that_was_given_up_is_not_done_later(monkeypatch):
    monkeypatch.setattr("temper_core.disk_thread.ANSWER_S", 0.05)
    late, done = [], []
    monkeypatch.setattr(
        "temper_core.disk_thread._thread.start_new_thread", lambda run, _: late.append(run)
    )
    thread = DiskThread("the history")
    with pytest.raises(SilentDiskError):
        thread.ask(lambda: done.append("given up"))

    thread.begin(lambda: done.append("begun"))
    late[0]()

    assert done == ["begun"]
