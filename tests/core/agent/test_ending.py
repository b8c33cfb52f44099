"""The end of a real agent whose plugin leaves something that Python waits for at its end."""

import time

import pytest

from temper_core.agent.ending import GRACE_S, WITHIN_S
from tests.core.cli.test_command_line import install

LEAVING = """
import atexit
import ctypes
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from temper_core import Instrument, OpenInstrument, hookimpl

def a_thread():
    threading.Thread(target=time.sleep, args=(3600,), name="left-by-it", daemon=False).start()

def a_pool():
    ThreadPoolExecutor(1).submit(time.sleep, 3600)

def a_function():
    atexit.register(time.sleep, 3600)

def the_lock():
    atexit.register(ctypes.PyDLL(None).sleep, 3600)

@hookimpl
def temper_instruments():
    {leave}()
    return [Instrument("leaver", lambda _: OpenInstrument())]
"""


def ended(start, tmp_path, monkeypatch, leave):
    """Run an agent until SIGTERM. Return its exit code, its log, and how long it took to end."""
    path = tmp_path / "path"
    path.mkdir()
    environment = install(path, "leaver", LEAVING.format(leave=leave))
    monkeypatch.setenv("PYTHONPATH", environment["PYTHONPATH"])
    agent = start()
    agent.wait_for(agent.observation, "observation")
    begun = time.monotonic()
    code = agent.stop()
    return code, (agent.directory / "log").read_text(), time.monotonic() - begun


@pytest.mark.parametrize("leave", ["a_thread", "a_pool", "a_function"])
def test_an_agent_ends_whatever_a_plugin_leaves_behind(start, tmp_path, monkeypatch, leave):
    code, log, took_s = ended(start, tmp_path, monkeypatch, leave)

    assert code == 0
    assert "agent_stopped" in log
    assert "threads_left_behind" in log
    assert ("left-by-it" in log) == (leave == "a_thread")
    assert took_s < WITHIN_S + 15.0


def test_the_kernel_ends_an_agent_whose_plugin_holds_the_interpreter_at_the_end(
    start, tmp_path, monkeypatch
):
    code, log, took_s = ended(start, tmp_path, monkeypatch, "the_lock")

    assert code == -14
    assert "agent_stopped" in log
    assert took_s < WITHIN_S + GRACE_S + 15.0
