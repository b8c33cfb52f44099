"""A disk that hangs when it is told to."""

import threading

import pytest

from temper_core.safe_mode import patient_writer
from temper_core.safe_mode.state_file import StateFile
from tests.patience import PATIENCE_S


class Disk:
    """Every write of requests, and ``stand``, waits while the disk hangs."""

    def __init__(self):
        self._answers = threading.Event()
        self._answers.set()

    def hang(self):
        self._answers.clear()

    def answer(self):
        self._answers.set()

    def stand(self):
        self._answers.wait(PATIENCE_S)


@pytest.fixture
def disk(monkeypatch):
    made, write = Disk(), StateFile.write

    def write_when_it_answers(file, requests):
        made.stand()
        write(file, requests)

    monkeypatch.setattr(StateFile, "write", write_when_it_answers)
    monkeypatch.setattr(patient_writer, "WAIT_S", 0.05)
    yield made
    made.answer()
