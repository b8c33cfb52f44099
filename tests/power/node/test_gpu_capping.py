"""Caps of GPUs by NVML, on made GPUs, and on the real library where it cannot be loaded."""

import inspect
import json
import os
import threading
import time
from contextlib import suppress

import pynvml
import pytest

from temper_core import MachineError
from temper_core.testing import MadeContext
from temper_plugin_power.node.gpu_capping import GpuCapping
from temper_plugin_power.node.gpu_limits import GpuLimits, opened_limits
from temper_plugin_power.node.gpu_worker import NO_GPU, GpuWorker
from temper_plugin_power.node.nvml import Library, Nvml, load_library
from temper_plugin_power.node.spec_file import CapSpec
from tests.power.node.fake_nvml import FakeGpu, FakeNvml

FUNCTIONS = sorted(name for name in vars(Library) if name.startswith("nvml"))
RECORD = "device-values.json"
PATH = "GPU-0/power_limit_mw"
HALF = CapSpec(None, None, 0.0, gpu_percent=60.0)
NONE = CapSpec(None, None, 0.0)


def watts(amount):
    return CapSpec(None, None, 0.0, gpu_watts=amount)


@pytest.fixture
def state(tmp_path):
    return MadeContext(folder=tmp_path).state


@pytest.fixture
def library():
    return FakeNvml(FakeGpu(0), FakeGpu(1))


def opened(library, state):
    capping = GpuCapping(Nvml(library), state)
    capping.open()
    capping.recall()
    done = capping.lift("left by an agent that crashed")
    capping.renew_record()
    return capping, done


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_made_library_has_the_functions_of_the_real_one(name):
    def parameters(function):
        return list(inspect.signature(function).parameters)

    made, real = getattr(FakeNvml(), name), getattr(pynvml, name)

    assert parameters(made) == parameters(real)
    assert parameters(getattr(Library, name))[1:] == parameters(real)


def test_nothing_else_of_the_library_is_made_up():
    made = {name for name in vars(FakeNvml) if name.startswith("nvml")}

    assert made == set(FUNCTIONS)
    assert issubclass(pynvml.NVMLError, Exception)


def test_a_machine_without_the_driver_says_so():
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        pytest.skip("this machine has the driver")

    with pytest.raises(MachineError, match="NVML: NVML Shared Library Not Found"):
        Nvml(load_library()).open()


def test_without_the_module_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)

    with pytest.raises(MachineError, match=r"install temper-plugin-power\[nvml\]"):
        load_library()


def test_a_cap_is_set_on_every_gpu_read_back_and_given_back(library, state):
    capping, _ = opened(library, state)

    done = capping.apply(HALF)
    during, caps = library.limits(), capping.caps_watts
    again = capping.apply(HALF)
    ended = capping.close("the agent stops")

    assert [(each.kind, each.package) for each in done] == [
        ("applied", "gpu-0"),
        ("applied", "gpu-1"),
    ]
    assert done[0].detail == "asked 210.0 W, read back 210.0 W"
    assert (during, again, caps) == ([210, 210], [], {"gpu-0": 210.0, "gpu-1": 210.0})
    assert [each.kind for each in ended] == ["restored", "restored"]
    assert library.limits() == [350, 350]
    assert not library.is_open


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (watts(300), 300),
        (watts(200), 200),
        (watts(199), 200),
        (watts(350), 350),
        (watts(9000), 350),
        (CapSpec(None, None, 0.0, gpu_percent=57.2), 200.2),
        (CapSpec(None, None, 0.0, gpu_percent=57.1), 200),
        (CapSpec(None, None, 0.0, gpu_watts=250, gpu_percent=60), 250),
        (NONE, 350),
    ],
)
def test_a_cap_is_within_the_bounds_of_the_device(library, state, spec, expected):
    capping, _ = opened(library, state)

    capping.apply(spec)

    assert library.limits() == [expected, expected]


def test_a_cap_never_raises_a_limit(state):
    library = FakeNvml(FakeGpu(0, limit=250))
    capping, _ = opened(library, state)

    assert capping.apply(watts(300)) == []
    assert library.limits() == [250]


def test_when_no_cap_is_asked_for_any_more_the_limit_comes_back(library, state):
    capping, _ = opened(library, state)
    capping.apply(HALF)

    done = capping.apply(NONE)

    assert [each.detail for each in done] == ["the former limit: no cap is asked for"] * 2
    assert library.limits() == [350, 350]


def test_the_record_is_written_before_the_limit(library, state):
    capping, _ = opened(library, state)
    seen = []
    library.before_set = lambda: seen.append(json.loads((state.path / RECORD).read_text()))

    capping.apply(HALF)

    assert seen[0]["values"] == [{"path": PATH, "before": "350000", "now": None}]


def test_at_the_end_every_limit_is_back_before_the_record_is_written(library, state, monkeypatch):
    capping, _ = opened(library, state)
    capping.apply(HALF)
    seen, write = [], state.write

    def note(name, content):
        seen.append(library.limits())
        return write(name, content)

    monkeypatch.setattr(state, "write", note)
    capping.close("the agent stops")

    assert seen == [[350, 350]]
    assert json.loads((state.path / RECORD).read_text()) == {"values": []}


def test_the_next_agent_gives_back_what_a_crash_has_left(library, state):
    crashed, _ = opened(library, state)
    crashed.apply(HALF)

    _, done = opened(library, state)

    assert library.limits() == [350, 350]
    assert {each.detail for each in done} == {"the former limit: left by an agent that crashed"}
    assert json.loads((state.path / RECORD).read_text()) == {"values": []}


def test_a_limit_that_somebody_else_has_set_stays(library, state):
    capping, _ = opened(library, state)
    capping.apply(HALF)
    library.gpus[0].limit_mw = 220_000

    done = capping.close("the agent stops")

    assert library.limits() == [220, 350]
    assert "left as another process has set it" in done[0].detail


def test_a_refusal_is_an_error_and_told_once(library, state):
    capping, _ = opened(library, state)
    library.refuses = "Insufficient Permissions"

    done = capping.apply(HALF)

    assert {(each.kind, each.detail) for each in done} == {
        ("error", "gpu-0: NVML: Insufficient Permissions"),
        ("error", "gpu-1: NVML: Insufficient Permissions"),
    }
    assert capping.apply(HALF) == []
    assert capping.caps_watts == {}


def test_a_gpu_without_limits_is_left_out(state):
    library = FakeNvml(FakeGpu(0), FakeGpu(1))
    library.gpus[0].has_limits = False
    capping, _ = opened(library, state)

    capping.apply(HALF)

    assert capping.count == 1
    assert library.limits() == [350, 210]


@pytest.mark.parametrize("text", ["{", '{"values": [{"path": 1}]}', '{"other": []}', "[]"])
def test_a_damaged_record_caps_nothing_and_is_named(library, state, text):
    state.write(RECORD, text.encode())

    with pytest.raises(MachineError, match=RECORD):
        opened(library, state)


def test_a_gpu_that_the_machine_has_lost_has_no_limit_to_give_back(library):
    with opened_limits(lambda: library) as limits:
        assert limits.read(PATH) == "350000"
        assert limits.read("GPU-7/power_limit_mw") is None
    assert not library.is_open


def test_a_gpu_that_was_not_read_is_not_taken_for_a_lost_one(library):
    library.gpus[0].has_limits = False

    with opened_limits(lambda: library) as limits, pytest.raises(MachineError, match=PATH):
        limits.read(PATH)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [(PATH, "-1", "no limit in milliwatts"), ("GPU-7/power_limit_mw", "1", "names no such GPU")],
)
def test_a_record_that_is_odd_sets_no_limit(library, path, value, problem):
    nvml = Nvml(library)
    nvml.open()

    with pytest.raises(MachineError, match=problem):
        GpuLimits(nvml).write(path, value)

    assert library.limits() == [350, 350]


class Worker:
    """A worker on a made library."""

    def __init__(self, library, state, **options):
        self.worker = GpuWorker(state, lambda: library, **options)
        self.worker.start()

    def until(self, is_so):
        end = time.monotonic() + 10
        while not is_so():
            assert time.monotonic() < end
            time.sleep(0.01)


def test_the_worker_follows_the_last_wish_and_gives_back_at_the_end(library, state):
    made = Worker(library, state)
    done = made.worker.ask(HALF, "")
    made.until(lambda: len(made.worker.last) == len(library.gpus))
    made.until(lambda: made.worker.is_here)
    done += made.worker.close("the agent stops")

    assert [each.kind for each in done] == ["applied", "applied", "restored", "restored"]
    assert library.limits() == [350, 350]


def test_a_gpu_whose_library_fails_in_another_way_keeps_no_limit_of_another(
    library, state, monkeypatch
):
    made, limit_of = Worker(library, state), library.nvmlDeviceGetPowerManagementLimit
    made.worker.ask(HALF, "")
    made.until(lambda: library.limits() == [210, 210])
    with monkeypatch.context() as broken:
        name = "nvmlDeviceGetPowerManagementLimit"
        broken.setattr(library, name, lambda gpu: limit_of(gpu) if gpu.uuid == "GPU-1" else 1 // 0)
        made.worker.ask(None, "safe mode is requested")
        made.until(lambda: library.limits() == [210, 350])
        made.until(lambda: "ZeroDivisionError" in made.worker.last["gpu-0"].detail)

    made.worker.ask(None, "safe mode is requested")
    made.until(lambda: library.limits() == [350, 350])
    made.worker.close("the agent stops")


@pytest.mark.parametrize("target", ["/dev/zero", "", "/nowhere"])
def test_a_record_that_is_no_file_is_not_waited_for(library, state, target):
    state.write(RECORD, b"{}")
    path = state.path / RECORD
    path.unlink()
    path.symlink_to(target) if target else os.mkfifo(path)
    made = Worker(library, state)

    made.until(lambda: str(path) in made.worker.problem)
    made.worker.close("the agent stops")

    assert library.limits() == [350, 350]


def test_a_driver_that_does_not_answer_keeps_nobody_waiting(library, state):
    goes_on, now = threading.Event(), [0.0]
    library.before_set = goes_on.wait
    made = Worker(library, state, clock=lambda: now[0])
    began = time.monotonic()
    made.until(lambda: made.worker.is_here)
    made.worker.ask(HALF, "")
    made.until((state.path / RECORD).exists)
    now[0] = 3.1
    problem = made.worker.problem
    took_s = time.monotonic() - began
    goes_on.set()
    made.worker.close("the agent stops")

    assert problem == "NVML has not answered for more than 3 s"
    assert took_s < 5
    assert library.limits() == [350, 350]


def test_a_machine_without_gpus_has_none_to_cap(state):
    made = Worker(FakeNvml(), state)

    made.until(lambda: made.worker.problem == NO_GPU)

    assert made.worker.close("the agent stops") == []
