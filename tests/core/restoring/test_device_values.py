"""Values of devices behind a plugin's library: recorded before a change, and given back."""

import json
import time
from contextlib import contextmanager

import pytest

from temper_core import DeviceValues, Instrument, MachineError, OpenInstrument, Restored, hookimpl
from temper_core.instruments.state_directory import InstrumentDirectory
from temper_core.plugin_host import PluginHost
from temper_core.restoring import device_values
from temper_core.restoring.changed_values import CHANGED_SINCE
from temper_core.restoring.device_values import HostedPlugins, give_back_devices, installed_plugins
from temper_core.restoring.host_files import Sparing, restore_files
from temper_core.restoring.restoration import Restoration
from temper_core.safe_mode.requests import SafeModeRequests

RECORD = "device-values.json"
LIMIT = "board-1/limit_mw"


class Boards:
    """Devices with one value each, behind a library that can be away."""

    def __init__(self):
        self.values = {LIMIT: "350"}
        self.problem = ""
        self.opened = 0

    def read(self, path):
        self._fail()
        return self.values.get(path)

    def write(self, path, value):
        self._fail()
        self.values[path] = value

    @contextmanager
    def reached(self):
        self.opened += 1
        self._fail()
        yield self

    def _fail(self):
        if self.problem:
            raise MachineError(self.problem)


class Plugin:
    """A plugin with the instrument ``boards``."""

    def __init__(self, devices):
        self.devices = devices

    @hookimpl
    def temper_instruments(self):
        return [Instrument("boards", lambda _context: OpenInstrument(), devices=self.devices)]


def plugins(devices):
    host = PluginHost()
    host.add(Plugin(devices), "boards")
    return HostedPlugins(lambda: host)


@pytest.fixture
def boards():
    return Boards()


@pytest.fixture
def state(made):
    return InstrumentDirectory(made.state, "boards", 1_000_000)


@pytest.fixture
def restore(made, boards):
    def run(devices=boards.reached, **options):
        return restore_files(
            made.settings, made.roots, Sparing(), plugins=plugins(devices), **options
        )

    return run


def changed(state, boards):
    DeviceValues(state, boards).set(LIMIT, "200")


def test_a_value_is_recorded_before_it_changes_and_given_back(state, boards):
    values = DeviceValues(state, boards)

    now = values.set(LIMIT, "200")
    recorded = json.loads((state.path / RECORD).read_text())["values"]

    assert (now, boards.values, values.recorded) == ("200", {LIMIT: "200"}, (LIMIT,))
    assert recorded == [{"path": LIMIT, "before": "350", "now": "200"}]
    assert values.give_back_one(LIMIT)
    assert (boards.values, values.recorded) == ({LIMIT: "350"}, ())


def test_a_value_is_given_back_before_its_record_is_written(state, boards):
    values = DeviceValues(state, boards)
    values.set(LIMIT, "200")
    before = (state.path / RECORD).read_text()

    assert values.give_back_unrecorded(LIMIT)
    during = (boards.values, values.recorded, (state.path / RECORD).read_text())
    values.renew_record()

    assert during == ({LIMIT: "350"}, (), before)
    assert json.loads((state.path / RECORD).read_text()) == {"values": []}
    assert values.set(LIMIT, "300") == "300"


def test_a_record_that_is_as_it_should_be_is_not_written_again(state, boards, monkeypatch):
    values = DeviceValues(state, boards)
    values.set(LIMIT, "200")
    monkeypatch.setattr(state, "write", lambda *_: pytest.fail("written"))

    values.renew_record()


def test_a_restoration_asks_the_plugin_and_removes_the_directory(made, state, boards, restore):
    changed(state, boards)

    said = restore(is_dry=True)
    before, opened = dict(boards.values), boards.opened
    done = restore()

    assert (before, opened, boards.values) == ({LIMIT: "200"}, 0, {LIMIT: "350"})
    assert said.removed == done.removed
    assert f"{LIMIT}: 350 again" in done.removed
    assert not made.state.exists()


def test_without_the_plugin_the_record_stays_and_the_restoration_fails(made, state, boards):
    changed(state, boards)

    done = restore_files(made.settings, made.roots, Sparing())

    (failed,) = [each for each in done.left if each.is_failure]
    assert failed.path == str(state.path / RECORD)
    assert failed.why.startswith("no installed plugin reaches the devices of instrument boards")
    assert (state.path / RECORD).exists()
    assert boards.values == {LIMIT: "200"}


@pytest.mark.parametrize("devices", [None, "no function", lambda: None])
def test_an_instrument_that_reaches_no_devices_keeps_the_record(state, boards, restore, devices):
    changed(state, boards)

    done = restore(devices)

    assert [each.path for each in done.left if each.is_failure] == [str(state.path / RECORD)]
    assert boards.values == {LIMIT: "200"}


def test_devices_that_are_away_keep_the_record_for_another_try(made, state, boards, restore):
    changed(state, boards)
    boards.problem = "the driver is not loaded"

    first = restore()
    boards.problem = ""
    second = restore()

    (failed,) = [each for each in first.left if each.is_failure]
    assert failed.why == "the driver is not loaded; the values in it are not given back"
    assert f"{LIMIT}: 350 again" in second.removed
    assert not made.state.exists()


def test_a_value_that_cannot_be_set_keeps_the_record(state, boards, restore):
    changed(state, boards)

    @contextmanager
    def breaking():
        boards.problem = "refused"
        yield boards

    done = restore(breaking)

    assert [(each.path, each.why) for each in done.left if each.is_failure] == [(LIMIT, "refused")]
    assert (state.path / RECORD).exists()


def test_a_plugin_that_fails_keeps_the_record(state, boards, restore):
    changed(state, boards)

    done = restore(lambda: 1 // 0)

    (failed,) = [each for each in done.left if each.is_failure]
    assert "ZeroDivisionError" in failed.why
    assert (state.path / RECORD).exists()


class Steering:
    """What a restoration withdraws from the kernel, which is nothing here."""

    def withdraw(self):
        pass

    def come_back(self):
        pass


def test_a_running_agent_restores_by_its_own_plugins(made, state, boards):
    changed(state, boards)
    requests = SafeModeRequests(made.state / "safe-mode", made.state / "requests.json")
    own = plugins(boards.reached)
    restoration = Restoration(made.settings, requests, Steering(), made.roots, own)
    heard = []
    restoration.ask("operator", "uninstall", heard.append)

    restoration.turn(())

    assert f"{LIMIT}: 350 again" in heard[0].removed
    assert boards.values == {LIMIT: "350"}


def test_a_driver_that_does_not_answer_is_not_waited_for(state, boards, restore, monkeypatch):
    monkeypatch.setattr(device_values, "DEADLINE_S", 0.2)
    changed(state, boards)
    began = time.monotonic()

    done = restore(lambda: time.sleep(30))

    assert time.monotonic() - began < 10
    assert [each.path for each in done.left if each.is_failure] == [str(state.path / RECORD)]


def test_a_value_that_somebody_else_has_set_stays(made, state, boards, restore):
    changed(state, boards)
    boards.values[LIMIT] = "300"

    done = restore()

    assert [(each.path, each.why) for each in done.left] == [(LIMIT, CHANGED_SINCE)]
    assert boards.values == {LIMIT: "300"}
    assert not (made.state / "instruments").exists()


def test_a_device_that_is_gone_has_nothing_to_give_back(made, state, boards, restore):
    changed(state, boards)
    boards.values.clear()

    assert restore().left == ()
    assert boards.values == {}
    assert not made.state.exists()


def test_a_record_without_values_needs_no_plugin(made, state, boards):
    values = DeviceValues(state, boards)
    values.set(LIMIT, "200")
    values.give_back_all()

    done = restore_files(made.settings, made.roots, Sparing())

    assert done.left == ()
    assert not made.state.exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"values": [{"path": "\\n", "before": "1"}]}'])
def test_a_damaged_record_is_named_and_stays(made, state, text):
    state.write(RECORD, text.encode())

    (left,) = give_back_devices(state.path, installed_plugins(made.settings)).left

    assert (left.path, left.is_failure) == (str(state.path / RECORD), True)
    assert left.why.endswith("the values in it are not given back")


def test_the_next_process_gives_back_what_a_crash_has_left(state, boards):
    changed(state, boards)

    done = DeviceValues(state, boards).take_over()

    assert done == Restored((f"{LIMIT}: 350 again",))
    assert boards.values == {LIMIT: "350"}
