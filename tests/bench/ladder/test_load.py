import json
import shutil
import subprocess
import time
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


def served(program, seed, name="weight", level=0, **changed):
    arguments = {**SHORT.arguments(LOADS[name], level, seed), "settle_ms": 20, **changed}
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


def test_sigterm_ends_the_requests_and_keeps_the_answers(program):
    arguments = {**SHORT.arguments(LOADS["weight"], 0, 1), "seconds": 600, "arrivals": 1}
    with subprocess.Popen(
        command(program, "serve", arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "begin\n"
        time.sleep(0.3)
        process.terminate()
        seen = json.loads(process.stdout.readline())
        process.stdin.close()

    assert seen["unanswered"] == 0
    assert 10 < len(seen["requests"]) < 10_000


def test_an_unknown_option_is_refused(program):
    ended = subprocess.run(
        [program, "serve", "colour=red"], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 2
    assert "colour" in ended.stderr


def of_kind(seen, kind):
    return [each for each in seen["threads"] if each["kind"] == kind]


def test_threads_of_a_burst_are_named_like_a_collectors(program):
    arguments = SHORT.arguments(LOADS["burst"], level=2, seed=1)
    with subprocess.Popen(
        command(program, "serve", {**arguments, "settle_ms": 50}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == b"begin\n"
        tasks = Path(f"/proc/{process.pid}/task").iterdir()
        names = {(task / "comm").read_text().strip() for task in tasks}

    assert names == {"ladder-client", "ladder-server", "GC Thread#0", "GC Thread#1"}


def test_a_burst_does_a_fixed_amount_of_work(program):
    small, large = (
        served(program, 1, "burst", 1, burst_turns=turns, burst_ms=20) for turns in (1000, 1000_000)
    )

    assert 0 < of_kind(small, "burst")[0]["run_ns"] < of_kind(large, "burst")[0]["run_ns"] / 4


def test_log_writers_rest_after_their_lines(program):
    always, at_times = (served(program, 1, "noise", 1, lines=lines) for lines in (0, 1))

    assert of_kind(at_times, "noise")[0]["run_ns"] < of_kind(always, "noise")[0]["run_ns"] / 4


@pytest.mark.parametrize("mode", ["spin", "compress"])
def test_busy_threads_count_until_they_are_ended(program, tmp_path, mode):
    counts = tmp_path / "counts"
    arguments = {"threads": 2, "counts": str(counts)}
    with subprocess.Popen(command(program, mode, arguments)) as spinning:
        while not counts.exists() or not any(counts.read_bytes()):
            assert spinning.poll() is None
        spinning.terminate()

    assert len(counts.read_bytes()) == 2 * 64


def threads_of(process: "subprocess.Popen[bytes]") -> set[str]:
    names = Path(f"/proc/{process.pid}/task").iterdir()
    return {path.name for path in names if path.name != str(process.pid)}


@pytest.mark.parametrize("life_ms", [0, 20], ids=["for-good", "for-a-while"])
def test_napping_threads_live_for_good_or_are_replaced(program, life_ms):
    arguments = {"threads": 5, "pause_us": 1000, "life_ms": life_ms}
    with subprocess.Popen(command(program, "nap", arguments)) as process:
        while len(first := threads_of(process)) < arguments["threads"]:
            time.sleep(0.01)
        time.sleep(0.3)
        later = threads_of(process)
        process.terminate()

    assert bool(first & later) is (life_ms == 0)
    assert len(later) >= arguments["threads"] - 1
