import json
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.ladder.loads import LOADS, Server, command

SOURCE = Path(__file__).parents[3] / "bench/ladder/load.c"
SHORT = Server(seconds=0.3, period_us=5000, turns=1000, servers=2)

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    made = tmp_path_factory.mktemp("load") / "load"
    subprocess.run(["gcc", "-O2", "-pthread", "-o", made, SOURCE, "-lm"], check=True)
    return made


def served(program, seed, name="weight", level=0):
    arguments = {**SHORT.arguments(LOADS[name], level, seed), "settle_ms": 20}
    ended = subprocess.run(
        command(program, "serve", arguments), input="", capture_output=True, text=True, check=True
    )
    begin, result = ended.stdout.splitlines()
    assert begin == "begin"
    return json.loads(result)


def test_a_seed_has_its_own_number_of_requests_and_all_are_answered(program):
    first, again, other = (served(program, seed) for seed in (1, 1, 5))

    assert len(first["requests"]) == len(again["requests"]) != len(other["requests"])
    assert first["unanswered"] == 0
    assert all(wait >= 0 and service > 0 for wait, service in first["requests"])


def test_threads_are_counted_by_kind(program):
    seen = served(program, 1, "noise", level=2)

    assert [each["kind"] for each in seen["threads"]] == ["client", *["server"] * 2, *["noise"] * 2]
    assert all(each["run_ns"] > 0 for each in seen["threads"])


def test_servers_tell_where_they_worked(program):
    seen = served(program, 1)

    pieces = sum(work for each in seen["threads"] for work in each["work_by_cpu"].values())
    assert pieces == 50 * len(seen["requests"])


def test_an_unknown_option_is_refused(program):
    ended = subprocess.run(
        [program, "serve", "colour=red"], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 2
    assert "colour" in ended.stderr


def test_spinners_count_until_they_are_ended(program, tmp_path):
    counts = tmp_path / "counts"
    arguments = {"threads": 2, "counts": str(counts)}
    with subprocess.Popen(command(program, "spin", arguments)) as spinning:
        while not counts.exists() or not any(counts.read_bytes()):
            assert spinning.poll() is None
        spinning.terminate()

    assert len(counts.read_bytes()) == 2 * 64
