"""The power of GPUs: a program that answers, fails, hangs, or is not there."""

import time

import pytest

from temper_plugin_power.node.gpus import Gpu, GpuReader, read_gpus


def reader(tmp_path, script, interval_s=20.0):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return GpuReader(interval_s, lambda _: str(program))


def answered(gpus, until):
    """Turn until there is an answer, at a clock that stands."""
    deadline = time.monotonic() + 30
    while not until() and time.monotonic() < deadline:
        gpus.turn(0.0)
        time.sleep(0.01)


def test_an_answer_is_read_line_by_line():
    text = "0, 61.35, 400.00\n1, [N/A], 400.00\nNVIDIA-SMI has failed\n2, nan, inf\n"

    assert list(read_gpus(text)) == [
        Gpu(0, 61.35, 400.0),
        Gpu(1, None, 400.0),
        Gpu(2, None, None),
    ]


def test_a_machine_without_the_program_says_so():
    gpus = GpuReader(20.0, lambda _: None)
    gpus.turn(0.0)

    assert (gpus.gpus, gpus.problem) == ((), "nvidia-smi is not installed")


def test_an_answer_is_taken_when_it_is_there(tmp_path):
    gpus = reader(tmp_path, 'echo "0, 61.35, 400.00"')

    answered(gpus, lambda: gpus.gpus)

    assert (gpus.gpus, gpus.problem) == ((Gpu(0, 61.35, 400.0),), "")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 9", "nvidia-smi ended with 9"),
        ("echo no devices were found", "nvidia-smi names no GPU"),
    ],
)
def test_a_failure_is_named(tmp_path, script, problem):
    gpus = reader(tmp_path, script)

    answered(gpus, lambda: gpus.problem)

    assert gpus.problem == problem


def test_a_program_that_hangs_is_ended_and_holds_nothing_up(tmp_path):
    gpus = reader(tmp_path, "exec sleep 600")
    gpus.turn(0.0)

    gpus.turn(2.9)
    before = gpus.problem
    gpus.turn(3.1)
    after = gpus.problem
    gpus.close()

    assert (before, after) == ("", "nvidia-smi has not answered within 3 s")


def test_a_program_that_prints_without_end_is_ended(tmp_path):
    gpus = reader(tmp_path, "while :; do echo 0, 61.35, 400.00; done")
    gpus.turn(0.0)
    gpus.turn(3.1)
    gpus.close()

    assert gpus.problem == "nvidia-smi has not answered within 3 s"


def test_it_is_asked_once_in_an_interval(tmp_path):
    gpus = reader(tmp_path, f'echo x >> {tmp_path}/asked; echo "0, 1.0, 2.0"')
    answered(gpus, lambda: gpus.gpus)

    gpus.turn(19.9)
    gpus.turn(19.9)

    assert (tmp_path / "asked").read_text() == "x\n"
