"""The memory that a call into a plugin takes."""

import mmap

import pytest

from temper_core import Detector, InputError, PluginError, hookimpl
from temper_core.plugin_host import PluginHost
from temper_core.plugin_host.call_memory import CallMemory, private_bytes
from temper_core.plugin_host.hosted_plugin import MIB, NotActive
from temper_core.settings.models import PluginHostSettings, Settings
from tests.patience import PATIENCE_S

BOUND_MIB = 32


class Hoarder:
    def __init__(self):
        self.kept = []
        self.first, self.second = Detector("hoards", self.hoard), Detector("sees", self.see)

    @hookimpl
    def temper_detectors(self):
        return [self.first, self.second]

    def hoard(self, mib):
        self.kept.append(b"\1" * (mib * MIB))

    def see(self, _pod):
        return None


@pytest.fixture
def hoarder():
    hoarder = Hoarder()
    yield hoarder
    hoarder.kept.clear()  # or its memory is given back during a call of a later test


@pytest.fixture
def host(hoarder):
    settings = PluginHostSettings(deadline_s=PATIENCE_S, call_memory_mib=BOUND_MIB)
    host = PluginHost(Settings(plugin_host=settings))
    host.add(hoarder, "hoarder")
    return host


def test_a_part_whose_call_grows_the_agent_beyond_the_bound_is_set_aside_and_named(host, hoarder):
    with pytest.raises(PluginError, match=r"grew the agent by \d+ MiB in one call, of 32 MiB"):
        host.call("hoarder", hoarder.hoard, 2 * BOUND_MIB, part="detector hoards")

    with pytest.raises(NotActive):
        host.call("hoarder", hoarder.hoard, 0, part="detector hoards")
    host.call("hoarder", hoarder.see, None, part="detector sees")
    (state,) = host.states()
    assert "grew the agent by" in state.lost[0]
    assert state.lost[0].startswith("detector hoards: ")


def test_a_call_that_grows_the_agent_within_the_bound_is_answered(host, hoarder):
    host.call("hoarder", hoarder.hoard, BOUND_MIB // 2, part="detector hoards")

    assert host.states()[0].lost == ()


def test_memory_that_a_call_has_given_back_is_not_charged(host):
    def pass_by():
        with mmap.mmap(-1, 2 * BOUND_MIB * MIB, flags=mmap.MAP_PRIVATE) as taken:
            taken.write(b"\1" * len(taken))

    host.call("hoarder", pass_by, part="passing")

    assert host.states()[0].lost == ()


@pytest.mark.parametrize("allows", [(), (InputError,)])
def test_a_call_that_fails_is_charged_as_well(host, hoarder, allows):
    def hoard_and_refuse():
        hoarder.hoard(2 * BOUND_MIB)
        raise InputError("no")

    with pytest.raises(PluginError, match="grew the agent by"):
        host.call("hoarder", hoard_and_refuse, allows=allows, part="endpoint")

    assert host.states()[0].lost[0].startswith("endpoint: grew the agent by")


def test_growth_is_charged_for_the_time_in_which_a_call_was_the_only_one():
    measured = iter([0, 300, 350, 400])
    memory = CallMemory(bound_bytes=100, measure=lambda: next(measured))

    first, second = memory.begin(), memory.begin()
    charged = [memory.end(second), memory.end(first)]

    assert charged == [0, 350]


def test_memory_that_was_given_back_beside_another_call_is_not_charged():
    measured = iter([0, 300, 0, 0])
    memory = CallMemory(bound_bytes=100, measure=lambda: next(measured))

    first, second = memory.begin(), memory.begin()
    charged = [memory.end(second), memory.end(first)]

    assert charged == [0, 0]


def test_growth_is_not_charged_while_another_plugin_is_called():
    measured = iter([0, 0, 500, 500, 500, 900])
    memory = CallMemory(bound_bytes=100, measure=lambda: next(measured))

    first, second = memory.begin(), memory.begin()
    charged = [memory.end(first), memory.end(second)]
    alone = memory.end(memory.begin())

    assert charged == [0, 0]
    assert alone == 400


def test_pages_of_files_are_not_counted(tmp_path):
    path = tmp_path / "mapped"
    path.write_bytes(b"\1" * (BOUND_MIB * MIB))
    before = private_bytes()

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[::4096]) == BOUND_MIB * 256
        grown = private_bytes() - before

    assert before > 0
    assert grown < BOUND_MIB * MIB // 2
