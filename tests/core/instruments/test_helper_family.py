"""The descendants of a helper, as they are looked for while it runs. The processes are real."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from temper_core.instruments.family_pace import FamilyLook, FamilyPace
from temper_core.instruments.given_numbers import GivenNumbers, NumberWatch
from temper_core.instruments.helper_family import MARK, HelperFamily, read_stat

PROC = Path("/proc")


@pytest.fixture
def family():
    own = read_stat(PROC, os.getpid())
    made = HelperFamily(os.getpid(), "a-mark", own.start_ticks)
    yield made
    made.close()


@pytest.fixture
def start():
    started = []

    def start(**options):
        words = [sys.executable, "-Sc", "print(1, flush=True); input()"]
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, **options
        )
        process.stdout.readline()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def pids(members):
    return [pid for pid, _ in members]


def test_a_new_descendant_is_found_and_followed_until_it_ends(family, start):
    family.seen_by(FamilyLook.NEW)
    other, marked = start(), start(env={MARK: "a-mark"})

    found = [pids(family.seen_by(FamilyLook.NEW)) for _ in range(3)]

    assert other.pid not in found[0]
    assert found == [[marked.pid]] * 3
    marked.kill()
    marked.wait()
    assert pids(family.seen_by(FamilyLook.NEW)) == []


def test_a_descendant_that_a_search_finds_is_followed(family, start):
    marked = start(env={MARK: "a-mark"})

    assert pids(family.seen_by(FamilyLook.ALL)) == [marked.pid]
    assert pids(family.seen_by(FamilyLook.NEW)) == [marked.pid]
    assert pids(family.seen_by(FamilyLook.NOTHING)) == []


def test_a_new_process_has_a_number_that_was_given_since_the_last_look(start):
    watch = NumberWatch(PROC)
    assert os.getpid() in watch.look()

    process = start()

    given = watch.look()
    assert process.pid in given
    assert os.getpid() not in given


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        (GivenNumbers(5, 7), [6, 7]),
        (GivenNumbers(7, 3), [0, 1, 2, 3, 8, 9]),
        (GivenNumbers(4, 4), []),
        (GivenNumbers(None, 4), range(10)),
        (GivenNumbers(4, None), range(10)),
    ],
)
def test_numbers_begin_again_after_the_highest(given, numbers):
    assert [number for number in range(10) if number in given] == list(numbers)
    assert bool(given) == bool(numbers)


@pytest.mark.parametrize("content", [None, "", "0.1 0.2 0.3 1/2 x"])
def test_without_the_last_number_every_process_may_be_new(tmp_path, content):
    if content is not None:
        (tmp_path / "loadavg").write_text(content)
    watch = NumberWatch(tmp_path)
    watch.look()

    assert 5 in watch.look()


def test_looks_are_as_rare_as_they_are_dear():
    pace = FamilyPace()
    assert pace.due(10) is FamilyLook.ALL
    pace.took(FamilyLook.ALL, 0.002, 10)
    assert pace.due(10.5) is FamilyLook.NEW
    pace.took(FamilyLook.NEW, 0.01, 10.5)
    assert pace.due(14) is FamilyLook.NOTHING
    assert pace.due(14.6) is FamilyLook.NEW
    assert pace.due(18) is FamilyLook.ALL


def test_a_process_with_an_older_number_is_not_read(tmp_path):
    (tmp_path / "loadavg").write_text("0.00 0.00 0.00 1/9 8\n")
    family = HelperFamily(pid=5, mark="m", start_ticks=1, proc=tmp_path)
    family.seen_by(FamilyLook.ALL)
    for pid in (7, 9):
        (tmp_path / str(pid)).mkdir()
        fields = ["S", "1", "5", "5", *["0"] * 15, "100", *["0"] * 30]
        (tmp_path / f"{pid}/stat").write_text(f"{pid} (x) {' '.join(fields)}\n")
    (tmp_path / "loadavg").write_text("0.00 0.00 0.00 1/9 9\n")

    assert pids(family.seen_by(FamilyLook.NEW)) == [9]
    assert sorted(pids(family.seen_by(FamilyLook.ALL))) == [7, 9]
    family.close()
