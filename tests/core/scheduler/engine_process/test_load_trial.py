"""A fake engine loads behind a real gate, and nothing of it stays."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from temper_core.engine.dry_run import DryRunStage
from temper_core.errors import EngineError
from temper_core.scheduler.engine_process.load_trial import load_once
from temper_core.scheduler.host.roots import Roots

CONFIG = '[{"name": "all", "slice_us": 1}]'


@pytest.fixture
def trial(world, tmp_path, monkeypatch):
    """Load *config* on the made-up node, and see that neither file nor process of it is left."""
    if os.geteuid() != 0:
        pytest.skip("a gate needs root")
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    def run(config=CONFIG, *, timeout_s=15.0):
        try:
            return load_once(world.binary, config, timeout_s=timeout_s, roots=world.node.roots)
        except EngineError as error:
            if "no engine can be held back here" in str(error):
                pytest.skip("no mount namespace may be made here")
            raise
        finally:
            assert list(folder.iterdir()) == []
            assert processes_of(folder) == []

    return run


def processes_of(folder):
    """Find what runs with a file below *folder* among its arguments, as the launcher and engine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder).encode() in path.read_bytes():
                found.append(path.parent.name)
    return found


def test_a_sound_plan_is_loaded_and_never_attached(trial, world):
    found = trial()

    assert (found.stage, found.is_taken) == (DryRunStage.LOADED, True)
    assert world.node.state == "disabled"
    assert world.engine()["environment"]["RUST_BACKTRACE"] == "0"


def test_the_engine_that_schedules_is_not_touched(trial, world):
    world.node.attach("layered_1.1.4")

    found = trial()

    assert found.is_taken
    assert world.node.state == "enabled"


@pytest.mark.parametrize(
    ("words", "stage", "told"),
    [
        (
            "Error: Failed to load\n\nCaused by:\n  Argument list too long (os error 7)\n",
            DryRunStage.LOADED,
            "too large",
        ),
        (
            "Error: Too many layer specs\n",
            DryRunStage.VERIFIED,
            "verifying it: Too many layer specs",
        ),
        ('Error: Failed to parse specs[0] ("f:/x")\n', DryRunStage.PARSED, "Failed to parse specs"),
    ],
)
def test_a_plan_that_does_not_load_is_refused_with_the_stage(trial, world, words, stage, told):
    world.script(die=words)

    found = trial()

    assert (found.stage, found.is_taken) == (stage, False)
    assert told in found.line


def test_what_says_nothing_of_the_plan_is_the_machines_fault(trial, world):
    world.script(die="Error: sched_ext_ops.dump() missing, kernel too old?\n")

    with pytest.raises(EngineError, match="cannot run on this kernel"):
        trial()


def test_an_engine_that_never_arrives_is_ended(trial, world):
    world.script(hang=True)

    with pytest.raises(EngineError, match=r"did not load within 1 s"):
        trial(timeout_s=1.0)


def test_hints_get_a_map_that_only_this_user_can_open(trial, world):
    folder = world.node.folder / "sys/fs/bpf"
    folder.mkdir(parents=True)

    trial('[{"name": "HintEquals", "HintEquals": 5}]')

    option = next(each for each in world.engine()["arguments"] if "hint-map" in each)
    assert Path(option.partition("=")[2]).is_relative_to(folder)
    assert list(folder.iterdir()) == []


def test_without_sched_ext_there_is_nothing_to_load_into(tmp_path):
    with pytest.raises(EngineError, match="no sched_ext"):
        load_once(tmp_path / "scx_layered", CONFIG, roots=Roots(sys=tmp_path))


def test_without_memory_for_another_engine_none_is_started(trial, world):
    world.node.put("proc/meminfo", "MemAvailable: 1000 kB\n")

    with pytest.raises(EngineError, match="a second engine needs"):
        trial()

    assert not world.started.exists()
