"""The file that stands for the engine, run with a program that prints what it was given."""

import subprocess

import pytest

from bench.failures.engine_files import EngineFile, digest


@pytest.fixture
def engine(tmp_path):
    real = tmp_path / "real"
    real.write_text('#!/bin/sh\necho "$0 $@"\n')
    real.chmod(0o755)
    return EngineFile(tmp_path / "made", real)


def started(engine, *arguments):
    ended = subprocess.run([engine.path, *arguments], capture_output=True, text=True, check=True)
    return ended.stdout.split()


def test_the_real_engine_gets_the_agents_plan(engine):
    engine.be_real()

    assert started(engine, "--flag", "f:plan.json") == [str(engine.path), "--flag", "f:plan.json"]


def test_a_copy_of_the_engine_is_another_file_with_the_same_bytes(engine):
    copy = engine.be_copied()

    assert engine.path.resolve() == copy != engine.real
    assert digest(copy) == digest(engine.real)


def test_the_engine_of_a_refused_plan_gets_that_plan(engine):
    engine.be_refused()

    refused = f"f:{engine.directory}/refused.json"
    assert started(engine, "--flag", "f:plan.json") == [str(engine.real), "--flag", refused]


def test_the_engine_of_a_refused_plan_still_tells_its_version(engine):
    engine.be_refused()

    assert started(engine, "--version") == [str(engine.real), "--version"]


def test_the_real_engine_can_be_had_again(engine):
    engine.be_refused()
    engine.be_real()

    assert engine.path.resolve() == engine.real
