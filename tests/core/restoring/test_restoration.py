"""A running agent that is asked to leave nothing on its host."""

import fcntl
import json
import threading
from contextlib import nullcontext

import pytest
from attrs import evolve

from temper_core import Restored
from temper_core.records.restored import Leftover
from temper_core.restoring import nice_values
from temper_core.restoring.host_files import HELD_LOCK, Sparing, restore_files
from temper_core.restoring.restoration import Restoration
from temper_core.safe_mode import patient_writer
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.safe_mode.state_file import StateFile
from temper_core.scheduler.host.agent_lock import agent_lock
from temper_core.steering.niceness import GivenBack
from tests.control_plane.cluster import wait_until
from tests.patience import PATIENCE_S


class KernelObjects:
    def __init__(self):
        self.calls = []

    def withdraw(self):
        self.calls.append("withdraw")

    def come_back(self):
        self.calls.append("come_back")


@pytest.fixture
def requests(made):
    return SafeModeRequests(made.state / "safe-mode", made.state / "requests.json")


@pytest.fixture
def kernel_objects():
    return KernelObjects()


@pytest.fixture
def restoration(made, requests, kernel_objects):
    return Restoration(made.settings, requests, kernel_objects, made.roots)


def test_it_waits_until_no_engine_is_left_and_then_tells(
    made, restoration, requests, kernel_objects
):
    made.put(made.run / "engine-7.json")
    heard = []

    restoration.ask("cluster", "the operator wants it", heard.append)
    restoration.turn([4711])
    heard_early = list(heard)
    restoration.turn([])
    restoration.turn([])

    assert set(requests.active()) == {"cluster"}
    assert heard_early == []
    assert [each.removed for each in heard] == [(str(made.run / "engine-7.json"), str(made.run))]
    assert kernel_objects.calls == ["withdraw"]


def test_a_disk_that_hangs_delays_the_restoration_and_not_safe_mode(
    made, requests, kernel_objects, monkeypatch
):
    monkeypatch.setattr(patient_writer, "WAIT_S", 0.05)
    answers = threading.Event()
    monkeypatch.setattr(StateFile, "write", lambda *_: answers.wait(PATIENCE_S))
    restoration, heard = Restoration(made.settings, requests, kernel_objects, made.roots), []

    restoration.ask("cluster", "the operator wants it", heard.append)
    restoration.turn([])

    assert set(requests.active()) == {"cluster"}
    assert (heard, kernel_objects.calls) == ([], [])
    answers.set()
    wait_until(lambda: (restoration.turn([]), heard)[1], "the restoration", PATIENCE_S)


def test_what_the_agent_needs_to_run_stays_and_is_not_told(made, restoration):
    made.roots.sched_ext.mkdir(parents=True)  # so that an agent holds the lock for its life
    lock, socket = made.put(made.run / "agent.lock"), made.put(made.run / "agent.sock")
    heard = []

    restoration.ask("cluster", "", heard.append)
    restoration.turn([])

    assert lock.exists()
    assert socket.exists()
    assert heard == [Restored()]


def test_nothing_is_written_again_while_the_wish_stands(made, restoration, requests):
    requests.add("alice", "before")
    restoration.ask("cluster", "the operator wants it", lambda _: None)
    restoration.turn([])

    requests.add("bob", "meanwhile")

    assert set(requests.active()) == {"alice", "bob", "cluster"}
    assert not made.state.exists()


def test_what_still_stands_is_written_down_once_the_wish_is_withdrawn(
    made, restoration, requests, kernel_objects
):
    requests.add("alice", "before")
    restoration.ask("cluster", "the operator wants it", lambda _: None)
    restoration.turn([])

    requests.withdraw("cluster")
    restoration.withdraw("cluster")
    restoration.turn([])

    kept = json.loads((made.state / "requests.json").read_text())
    assert set(kept["requests"]) == {"alice"}
    assert kernel_objects.calls == ["withdraw", "come_back"]


def test_a_wish_that_is_withdrawn_before_its_turn_is_not_answered(made, restoration):
    note, heard = made.put(made.run / "engine.pid"), []

    restoration.ask("cluster", "", heard.append)
    restoration.turn([4711])
    restoration.withdraw("cluster")
    restoration.turn([])

    assert (heard, note.exists()) == ([], True)


def test_a_stranger_in_the_directory_is_reported(made, restoration):
    made.put(made.state / "diary")
    heard = []

    restoration.ask("cluster", "", heard.append)
    restoration.turn([])

    assert [(each.path, each.why) for each in heard[0].left] == [
        (str(made.state / "diary"), "is not Temper's")
    ]


def test_the_lock_of_a_plugin_is_removed_unless_a_process_holds_it(made):
    free, held = made.put(made.run / "free.lock"), made.put(made.run / "held.lock")
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        restored = restore_files(made.settings, made.roots, Sparing())

    assert (free.exists(), held.exists()) == (False, True)
    assert str(free) in restored.removed
    assert restored.left == (Leftover(str(held), HELD_LOCK, is_kept=True),)


def test_helpers_end_first_and_the_instruments_have_time_to_see_it(made, requests):
    settings = evolve(made.settings, observe=evolve(made.settings.observe, period_s=0.2))
    restoration = Restoration(settings, requests, KernelObjects(), made.roots)
    running, heard = ["a capture"], []

    def end_helpers():
        were, running[:] = bool(running), ()
        return were

    restoration.end_first(end_helpers)
    restoration.ask("cluster", "the operator wants it", heard.append)
    restoration.turn([])

    assert (running, heard) == ([], [])
    wait_until(lambda: (restoration.turn([]), heard)[1], "the restoration", PATIENCE_S)
    assert len(heard) == 1


@pytest.mark.parametrize("is_held", [True, False])
def test_an_agent_that_only_observes_leaves_the_files_of_one_beside_it(made, requests, is_held):
    made.path.write_text(f"{made.path.read_text()}enforce = false\n")
    engine, state = made.put(made.run / "engine.pid"), made.put(made.state / "requests.json", "{}")
    restoration = Restoration(made.settings, requests, KernelObjects(), made.roots)

    heard = []

    with agent_lock(made.run) if is_held else nullcontext():
        restoration.ask("cluster", "", heard.append)
        restoration.turn([])

    assert (engine.exists(), state.exists()) == (is_held, False)
    assert len(heard) == (not is_held)


def test_an_agent_that_only_observes_answers_once_the_one_beside_it_has_ended(
    made, requests, kernel_objects
):
    made.path.write_text(f"{made.path.read_text()}enforce = false\n")
    engine = made.put(made.run / "engine.pid")
    restoration, heard = Restoration(made.settings, requests, kernel_objects, made.roots), []
    with agent_lock(made.run):
        restoration.ask("cluster", "", heard.append)
        restoration.turn([])
        restoration.turn([])
    heard_beside = list(heard)

    restoration.turn([])

    assert (heard_beside, len(heard), engine.exists()) == ([], 1, False)


def test_an_agent_that_does_not_steer_gives_nice_values_back(
    made, requests, kernel_objects, monkeypatch
):
    made.put(made.run / "niceness.json", "{}")
    settings = evolve(made.settings, scheduler=evolve(made.settings.scheduler, enforce=False))
    restoration, heard = Restoration(settings, requests, kernel_objects, made.roots), []
    monkeypatch.setattr(nice_values, "give_back_all", lambda _: GivenBack(changed=3))

    restoration.ask("cluster", "", heard.append)
    restoration.turn([])

    assert "nice values of boosted threads: 3" in heard[0].removed
