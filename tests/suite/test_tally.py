"""What a tally says of a run of pytest, and of what no step ran."""

import json

import pytest

from tests.tally import Tally, compare, count_guests, read, slowest

TESTS = """
import pytest

def test_passes(): ...
def test_fails(): assert 0
def test_skips(): pytest.skip("no kernel here")

@pytest.mark.skip(reason="boots a kernel: make test-kernel")
def test_is_left(): ...

@pytest.mark.xfail(strict=True)
def test_fails_as_expected(): assert 0

@pytest.fixture
def broken(): raise ValueError

def test_errs(broken): ...
"""
REASONS = {
    "test_passes": "",
    "test_fails": "",
    "test_skips": "no kernel here",
    "test_is_left": "boots a kernel: make test-kernel",
    "test_fails_as_expected": "",
    "test_errs": "",
}


def test_each_test_is_in_the_tally_with_the_reason_of_its_skip(pytester, tmp_path):
    pytester.makepyfile(TESTS)
    pytester.runpytest_inprocess(plugins=[Tally(tmp_path / "tally/test.jsonl")])
    reasons = read(tmp_path / "tally")
    assert {name.rpartition("::")[2]: reason for name, reason in reasons.items()} == REASONS


@pytest.mark.parametrize("order", [("", "no kernel"), ("no kernel", "")])
def test_a_test_that_one_step_ran_has_run(tmp_path, order):
    for number, reason in enumerate(order):
        record = json.dumps({"test": "a", "skipped": reason})
        (tmp_path / f"{number}.jsonl").write_text(f"{record}\n")
    assert read(tmp_path) == {"a": ""}


def test_a_folder_without_tallies_has_no_test(tmp_path):
    assert read(tmp_path) == {}


def test_what_no_step_ran_is_counted_apart_from_what_was_left_out():
    targets = {"a": "test", "b": "test", "c": "test", "d": "e2e-node", "e": "e2e-node"}
    lines = compare(targets, {"a": "", "b": "no kernel", "d": "boots"}, frozenset(["e2e-node"]))
    assert [" ".join(line.split()) for line in lines] == [
        "tests 5 collected, 1 ran, 2 left out on purpose, 2 of make e2e-node",
        "tests 2 that no step ran",
        "1 no kernel",
        "1 no step came to it",
        "c",
    ]


def test_a_target_that_was_not_left_out_on_purpose_counts_as_not_run():
    lines = compare({"a": "test-kube"}, {"a": "needs a plane"}, frozenset())
    assert "1 that no step ran" in lines[1]


def test_guests_are_counted_with_their_schedulers_and_those_that_were_lost(tmp_path):
    (tmp_path / "guests").write_text("lived 12 12\nbroken 1 0\nlived 3 3\nlate 0 0\n")
    assert count_guests(tmp_path) == [
        "guests   4 booted, schedulers enabled 16 times, 1 broken, 0 died, 1 late"
    ]


def test_a_run_without_guests_has_no_line_of_them(tmp_path):
    assert count_guests(tmp_path) == []


def test_the_tally_has_the_time_of_each_test_with_its_setup(pytester, tmp_path):
    pytester.makepyfile("""
        import time, pytest

        @pytest.fixture
        def slow(): time.sleep(0.3)

        def test_waits(slow): time.sleep(0.3)
        def test_does_not_wait(): ...
    """)
    pytester.runpytest_inprocess(plugins=[Tally(tmp_path / "test.jsonl")])
    waits, other = map(json.loads, (tmp_path / "test.jsonl").read_text().splitlines())
    assert waits["seconds"] >= 0.6
    assert other["seconds"] >= 0.0


def test_the_files_that_took_longest_are_named_first(tmp_path):
    seconds = {"a.py::one": 4, "a.py::two[1::2]": 5, "b.py::one": 8}
    records = [{"test": test, "skipped": "", "seconds": each} for test, each in seconds.items()]
    (tmp_path / "unit.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
    assert [" ".join(line.split()) for line in slowest(tmp_path)] == [
        "slowest 9 s a.py (make unit)",
        "slowest 8 s b.py (make unit)",
    ]
