"""Caps of GPUs while the state disk hangs: they come back, and nothing sets them again."""

import json
import time

import pytest

from temper_core import CheckState, disk_thread
from temper_core.testing import MadeContext, make_snapshot
from temper_plugin_power.node import instrument
from temper_plugin_power.node.control import Control
from temper_plugin_power.node.gpu_worker import GpuWorker
from temper_plugin_power.node.instrument import PowerNode
from temper_plugin_power.node.spec_file import CapSpec
from temper_plugin_power.settings.node import NodeSettings
from tests.power.node.fake_nvml import FakeGpu, FakeNvml
from tests.power.node.stalling_disk import Disk
from tests.power.node.twin_file import TwinFile

RECORD = "device-values.json"
SAFE_MODE = "safe mode is requested"
CAPPED, FREE = [250.0] * 4, [350.0] * 4
SILENT = "the disk of the limits' record has not answered since"


def watts(amount):
    return CapSpec(None, None, 0.0, gpu_watts=amount)


def until(is_so):
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def disk(tmp_path):
    made = Disk(tmp_path / "temper", "power", 1_000_000)
    yield made
    made.answers.set()


@pytest.fixture
def library():
    """Four GPUs, and all limits that were set."""
    made = FakeNvml(*map(FakeGpu, range(4)))
    made.set_watts, set_limit = [], made.nvmlDeviceSetPowerManagementLimit

    def note(handle, limit):
        made.set_watts.append(limit / 1000)
        set_limit(handle, limit)

    made.nvmlDeviceSetPowerManagementLimit = note
    return made


@pytest.fixture
def worker(disk, library):
    """A worker whose GPUs have a cap, while the disk hangs under a change of it."""
    made = GpuWorker(disk, lambda: library)
    made.start()
    made.ask(watts(250), "")
    until(lambda: library.limits() == CAPPED and len(made.last) == len(CAPPED))
    disk.answers.clear()
    made.ask(watts(240), "")
    disk.hangs.wait()
    yield made
    disk.answers.set()
    made.close("the test ends")


def values(disk):
    return json.loads((disk.path / RECORD).read_text())["values"]


@pytest.mark.parametrize("wish", [None, CapSpec(None, None, 0.0)], ids=["safe-mode", "no-cap"])
def test_limits_come_back_while_the_disk_hangs(worker, disk, library, wish):
    worker.ask(wish, SAFE_MODE)
    until(lambda: library.limits() == FREE)
    until(lambda: not worker.caps_watts)
    assert not disk.answers.is_set()

    disk.answers.set()
    until(lambda: values(disk) == [])

    assert 240.0 not in library.set_watts
    assert library.limits() == FREE


@pytest.mark.parametrize("method", ["let_go", "close"])
def test_the_end_gives_limits_back_while_the_disk_hangs(worker, disk, library, method):
    done = getattr(worker, method)("the agent stops")
    during = library.limits()
    worker.ask(watts(240), "")  # by a look that was set aside
    disk.answers.set()
    until(lambda: values(disk) == [])

    assert [each.kind for each in done][-4:] == ["restored"] * 4
    assert (during, library.limits()) == (FREE, FREE)
    assert 240.0 not in library.set_watts


def test_a_cap_is_set_again_once_the_disk_answers_and_it_is_asked_for(worker, disk, library):
    worker.ask(None, SAFE_MODE)
    until(lambda: library.limits() == FREE)
    disk.answers.set()

    worker.ask(watts(230), "")
    until(lambda: library.limits() == [230.0] * 4)

    assert {each["before"] for each in values(disk)} == {"350000"}


def test_no_cap_is_set_before_its_record_is_on_the_disk(disk, library):
    disk.answers.clear()
    worker = GpuWorker(disk, lambda: library)
    worker.start()
    worker.ask(watts(250), "")
    disk.hangs.wait()
    during = library.limits()
    disk.answers.set()
    until(lambda: library.limits() == CAPPED)
    worker.close("the agent stops")

    assert during == FREE


def test_a_disk_that_does_not_answer_is_named_and_not_the_driver(worker, disk, monkeypatch):
    monkeypatch.setattr(disk_thread, "ANSWER_S", 0.0)
    during = worker.problem
    is_here = worker.is_here
    worker.ask(None, SAFE_MODE)
    disk.answers.set()

    assert during.startswith(SILENT)
    assert is_here
    until(lambda: not worker.problem)


def test_the_section_and_the_check_name_the_disk(disk, library, tmp_path, monkeypatch):
    monkeypatch.setattr(instrument, "GpuWorker", lambda state: GpuWorker(state, lambda: library))
    twin = TwinFile(tmp_path / "spec/twin.json")
    context = MadeContext(folder=tmp_path, state=disk)
    given = NodeSettings(
        actuate=True, interval="1s", spec_file=str(twin.path), powercap_path=str(tmp_path)
    )
    node, at_s = PowerNode.of(given, context), iter(range(100, 10_000, 5))

    def look_until(is_so):
        def looked():
            node.tell(make_snapshot(monotonic_s=float(next(at_s))))
            return is_so()

        until(looked)

    twin.say_gpus(250)
    look_until(lambda: library.limits() == CAPPED)
    disk.answers.clear()
    twin.say_gpus(240)
    look_until(disk.hangs.is_set)
    monkeypatch.setattr(disk_thread, "ANSWER_S", 0.0)
    section = node.section(make_snapshot())
    checks = {check.name: check for check in node.checks()}
    twin.path.unlink()
    look_until(lambda: library.limits() == FREE)
    disk.answers.set()
    node.close()

    assert section["caps"]["message"].startswith(SILENT)
    assert "power caps" not in checks
    assert checks["GPU power caps"].state is CheckState.WARNING
    assert SILENT in checks["GPU power caps"].detail


def test_the_record_of_packages_delays_no_return_of_gpus(disk, library, tmp_path, monkeypatch):
    monkeypatch.setattr(instrument, "GpuWorker", lambda state: GpuWorker(state, lambda: library))
    given = NodeSettings(actuate=True, powercap_path=str(tmp_path))
    node = PowerNode.of(given, MadeContext(folder=tmp_path, state=disk))
    limits = []
    monkeypatch.setattr(Control, "close", lambda _: limits.extend(library.limits()) or [])
    node._gpu_caps.ask(watts(250), "")
    until(lambda: library.limits() == CAPPED)

    node.close()

    assert limits == FREE
