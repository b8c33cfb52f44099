"""Alarms: functions that are called after a while, also where there is no memory for a thread."""

import sys
import threading
import time

from temper_kube.alarms import Alarm
from tests.patience import PATIENCE_S


def test_the_function_is_called_after_its_time():
    rung, began = threading.Event(), time.monotonic()

    Alarm(0.05, rung.set)

    assert rung.wait(PATIENCE_S)
    assert time.monotonic() - began >= 0.05


def test_a_cancelled_alarm_calls_nothing():
    rung = threading.Event()
    alarm = Alarm(0.2, rung.set)

    alarm.cancel()

    assert not rung.wait(0.5)


def test_a_postponed_alarm_waits_for_its_whole_time_again(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("temper_kube.alarms.time.monotonic", lambda: now[0])
    rung = threading.Event()
    alarm = Alarm(0.05, rung.set)

    now[0] = 0.04
    alarm.postpone()
    now[0] = 0.06

    assert not rung.wait(0.3)
    now[0] = 0.1
    assert rung.wait(PATIENCE_S)


class NoMemory(Alarm):
    """An alarm whose thread finds no memory."""

    def _wait(self, _function):
        raise MemoryError


def test_a_thread_without_memory_holds_nobody(monkeypatch):
    told = threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", lambda _: told.set())

    alarm = NoMemory(0.0, lambda: None)

    assert told.wait(PATIENCE_S)
    alarm.cancel()
