"""The guardian of a run, in a working directory of another user."""

import subprocess
import sys

import pytest

from temper_core import MachineError
from temper_plugin_trainer.refining import guardian
from temper_plugin_trainer.refining.benchmark import Asked
from temper_plugin_trainer.refining.benchmark_runs import Benchmark, BenchmarkError, GuardError

PROGRAM = f"""
from {guardian.__name__} import Guardian
Guardian(None).close()
"""


def test_no_module_is_imported_from_the_working_directory(tmp_path):
    for name in ("attrs", "json", "signal", "subprocess"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\n")

    done = subprocess.run([sys.executable, "-P", "-c", PROGRAM], check=False, cwd=tmp_path)

    assert done.returncode == 0
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("command", "limit_s", "why", "error"),
    [
        ("sleep 30", 0.2, "", BenchmarkError),
        ("sleep 30", 30, "other pods wait", GuardError),
        ("false", 30, "", BenchmarkError),
    ],
)
def test_a_failed_benchmark_has_no_group_to_end_any_more(command, limit_s, why, error):
    class Told(guardian.Guardian):
        def __init__(self):
            self.lines = []

        def tell(self, kind, what=guardian.NONE):
            self.lines.append(f"{kind} {what}")

    told = Told()

    with pytest.raises(error):
        Benchmark(command, Asked("x"), limit_s).run(lambda: why, told)

    assert told.lines[0].startswith("group ")
    assert guardian.watch(told.lines) == {}


@pytest.mark.parametrize(("failures", "calls"), [(0, 1), (2, 3), (9, guardian.TRIES)])
def test_what_a_busy_agent_does_not_end_at_once_is_tried_again(failures, calls, monkeypatch):
    monkeypatch.setattr(guardian, "PAUSE_S", 0.0)
    released = []

    class Door:
        def __init__(self, *_): ...

        def release(self, trial):
            released.append(trial)
            if len(released) <= failures:
                raise MachineError("no answer within 10 s")

    monkeypatch.setattr(guardian, "Door", Door)
    monkeypatch.setattr(guardian, "watch", lambda _: {guardian.TRIAL: "7"})
    monkeypatch.setattr(guardian.signal, "signal", lambda *_: None)

    guardian.main([])

    assert released == ["7"] * calls
