"""How often the engine's binary is run for its version."""

from pathlib import Path

import pytest

from temper_core.engine.installed import FAILURE_S, find_installed
from temper_core.errors import EngineError


@pytest.fixture
def binary(tmp_path):
    path = tmp_path / "scx_layered"
    write(path, "echo nothing of use")
    return path


def write(binary: Path, answer: str) -> None:
    binary.write_text(f"#!/bin/sh\necho run >> {binary.parent}/runs\n{answer}\n")
    binary.chmod(0o755)


def refuse(binary: Path, at_s: float) -> None:
    with pytest.raises(EngineError, match="no version of scx_layered"):
        find_installed(str(binary), lambda: at_s)


def runs(binary: Path) -> int:
    return len((binary.parent / "runs").read_text().splitlines())


def test_a_binary_that_failed_does_not_run_again_at_once(binary):
    refuse(binary, 0.0)
    refuse(binary, FAILURE_S - 1)

    assert runs(binary) == 1


def test_a_binary_that_failed_runs_again_later(binary):
    refuse(binary, 0.0)
    refuse(binary, FAILURE_S)

    assert runs(binary) == 2


def test_another_file_in_place_of_one_that_failed_runs_at_once(binary):
    refuse(binary, 0.0)
    write(binary, "echo scx_layered 1.1.4 target")

    assert find_installed(str(binary), lambda: 0.0).version == "1.1.4"


def test_a_binary_that_answered_does_not_run_again(binary):
    write(binary, "echo scx_layered 1.1.4 target")

    found = [find_installed(str(binary), lambda at_s=at_s: at_s) for at_s in (0.0, 10 * FAILURE_S)]

    assert [engine.version for engine in found] == ["1.1.4", "1.1.4"]
    assert runs(binary) == 1
