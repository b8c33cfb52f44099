"""Reads that block are left behind, and few of them."""

import threading

import pytest

from temper_core.patient_reading import MOST_STUCK, PatientReader
from tests.core.steering.processes import until


class Files:
    """Answers its number, but holds back those that are locked."""

    def __init__(self):
        self.locked = {}
        self.asked = []

    def lock(self, number):
        self.locked[number] = threading.Event()

    def unlock(self, number):
        self.locked.pop(number).set()

    def __call__(self, number):
        self.asked.append(number)
        if number in self.locked:
            self.locked[number].wait()
        return f"text {number}"


@pytest.fixture
def files():
    files = Files()
    yield files
    for number in [*files.locked]:
        files.unlock(number)


@pytest.fixture
def reader(files):
    reader = PatientReader(files, wait_s=0.05)
    yield reader
    reader.close()


def test_what_can_be_read_is_returned(reader):
    assert [reader.read(number) for number in (1, 2, 1)] == ["text 1", "text 2", "text 1"]


def test_a_read_that_blocks_returns_nothing_and_does_not_stop_the_others(reader, files):
    files.lock(7)

    blocked, other = reader.read(7), reader.read(8)

    assert (blocked, other) == (None, "text 8")


def test_nobody_asks_again_for_what_is_still_blocked(reader, files):
    files.lock(7)
    reader.read(7)

    reader.read(7)

    assert files.asked == [7]


def test_what_blocked_is_read_once_it_does_not_any_more(reader, files):
    files.lock(7)
    reader.read(7)

    files.unlock(7)

    until(lambda: reader.read(7) == "text 7")


def test_few_threads_are_ever_left_behind(reader, files):
    for number in range(20):
        files.lock(number)

    for number in range(20):
        reader.read(number)

    assert len(files.asked) == MOST_STUCK


def test_no_thread_stays_after_the_end(files):
    before = threading.active_count()
    reader = PatientReader(files, wait_s=0.05)
    files.lock(7)
    reader.read(7)
    reader.read(8)

    reader.close()
    files.unlock(7)

    until(lambda: threading.active_count() <= before)
