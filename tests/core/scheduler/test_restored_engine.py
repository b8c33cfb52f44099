"""A host is restored only once its running engine has ended, and no other one is started."""

import pytest
from attrs import evolve

from temper_core.restoring.restoration import Restoration


class KernelObjects:
    def withdraw(self):
        pass

    def come_back(self):
        pass


@pytest.fixture
def enforcing(world, plan):
    """A scheduler with a running engine, and the restoration of its host."""
    scheduler = world.enforce(plan("rest"))
    folder = world.node.folder
    given = world.settings(steering_pin=str(folder / "bpf/hints"))
    places = evolve(
        given.safe_mode, file=str(folder / "safe-mode"), state=str(folder / "requests.json")
    )
    socket = evolve(given.server, socket="")
    settings = evolve(given, safe_mode=places, server=socket)
    return scheduler, Restoration(settings, world.requests, KernelObjects(), world.node.roots)


def test_the_engine_ends_first_then_its_notes_go_and_none_follows(world, enforcing):
    scheduler, restoration = enforcing
    notes = [each.name for each in world.node.roots.run.iterdir()]
    heard = []

    restoration.ask("cluster", "to be removed", heard.append)
    restoration.turn(scheduler.engine_pids)
    heard_while_it_ran = list(heard)
    world.idle(scheduler)
    restoration.turn(scheduler.engine_pids)
    world.now += 700.0
    scheduler.step(world.now)

    assert "engine.pid" in notes
    assert heard_while_it_ran == []
    assert len(heard) == 1
    assert (scheduler.status.mode, scheduler.status.reason) == ("safe_mode", "requested")
    assert scheduler.engine_pid is None
    assert list(world.node.folder.glob("run/engine*")) == []
    assert not (world.node.folder / "requests.json").exists()


def test_once_released_the_engine_comes_back(world, enforcing):
    scheduler, restoration = enforcing
    restoration.ask("cluster", "to be removed", lambda _: None)
    world.idle(scheduler)
    restoration.turn(scheduler.engine_pids)

    restoration.withdraw("cluster")
    world.requests.withdraw("cluster")

    world.settle(scheduler, "enforcing")
