"""``temper train run`` on a real agent that observes, with real benchmark commands."""

import datetime as dt
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from temper_core import parse_profile
from tests.core.agent.running_agent import RunningAgent
from tests.patience import PATIENCE_S
from tests.trainer.refining.conftest import WORKLOAD
from tests.trainer.refining.planted import BEST, MEASURED
from tests.trainer.refining.surfaces import PROFILE

TEMPER = str(Path(sys.executable).with_name("temper"))
HERE = Path(__file__).parent
FOUND, NOTHING, INVALID, UNABLE = 0, 1, 2, 3
ONE_TRIAL = ("--rehearse", "--trials", 1)
OTHER = 12345


class TrainRun:
    """``temper train run`` for the pod ``spin``, in a directory of its own."""

    def __init__(self, agent, directory, *, is_traced=False):
        self.agent, self.is_traced = agent, is_traced
        self.started = []
        self.profile = directory / "shop.toml"
        self.profile.write_text(PROFILE)
        self.artifacts = directory / "artifacts"
        self.record = self.artifacts / "shop"
        self.benchmark = self.script("planted.py", agent.socket, "spin")

    @staticmethod
    def script(name, *arguments):
        return shlex.join([sys.executable, "-I", "-S", str(HERE / name), *map(str, arguments)])

    def slow(self, seconds):
        """Return the benchmark, which takes some seconds longer."""
        return f"sh -c 'sleep {seconds}; exec {self.benchmark}'"

    def command(self, *options, benchmark=None):
        given = {
            "--pod": "spin",
            "--benchmark": benchmark or self.benchmark,
            "--metric": MEASURED,
            "--profile": self.profile,
            "--artifacts": self.artifacts,
            "--warm-up": 0,
            "--more-waits": 9999,
            "--settings": self.agent.path,
        }
        pairs = [str(part) for pair in given.items() for part in pair]
        untraced = [] if self.is_traced else ["--no-trace"]
        return [TEMPER, "train", "run", *pairs, *untraced, *map(str, options)]

    def run(self, *options, **given):
        command = self.command(*options, **given)
        return subprocess.run(command, check=False, capture_output=True, text=True)

    def start(self, *options, **given):
        command = self.command(*options, **given)
        self.started.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        return self.started[-1]

    def end(self):
        """End what was started. What one test left would fail all after it."""
        for process in self.started:
            process.kill()
            process.wait()
            process.stderr.close()
        for trial in self.trials():
            self.agent.client.delete(f"/trials/{trial['id']}")

    @property
    def journal(self):
        path = self.record / "journal.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    def trials(self):
        return self.agent.get("/trials").json()["trials"]

    def stock_requesters(self):
        return list(self.agent.get("/safe-mode").json()["requests"])


@pytest.fixture
def train(agent, tmp_path):
    run = TrainRun(agent, tmp_path)
    yield run
    run.end()


@pytest.fixture(scope="module")
def finished(agent, tmp_path_factory):
    """Return a run of two trials that ended with a comparison with the stock scheduler."""
    run = TrainRun(agent, tmp_path_factory.mktemp("finished"))
    return run, run.run("--rehearse", "--trials", 2, "--stock-blocks", 4)


@pytest.fixture(scope="module")
def looked_at(agent, tmp_path_factory):
    """Return a run of one trial, with measurements that the agent looks at."""
    run = TrainRun(agent, tmp_path_factory.mktemp("looked-at"))
    return run, run.run(*ONE_TRIAL, benchmark=run.slow(1.2))


@pytest.fixture(scope="module")
def begun(agent, tmp_path_factory):
    """Return the record of a run that was interrupted early, to be copied."""
    run = TrainRun(agent, tmp_path_factory.mktemp("begun"))
    try:
        started = run.start(*ONE_TRIAL)
        eventually(lambda: len(run.journal) > 2)
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=PATIENCE_S)
    finally:
        run.end()
    return run


@pytest.fixture
def begun_train(begun, train):
    """Return ``train`` with a copy of that record as its own."""
    shutil.copytree(begun.artifacts, train.artifacts)
    return train


def eventually(condition):
    ends_at = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < ends_at
        time.sleep(0.02)
    return found


def benchmarks_of(train):
    """Return the processes that run the benchmark of *train*, but not temper itself."""
    wanted = "\0".join(shlex.split(train.benchmark)).encode()
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if _content(path).startswith(wanted)
    ]


def _content(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_run_that_is_interrupted_and_killed_goes_on_and_finds_the_planted_optimum(train):
    options = ("--rehearse", "--trials", 6, "--seed", 4)

    interrupted = train.start(*options)
    eventually(lambda: len(train.journal) > 14 and train.trials())
    interrupted.send_signal(signal.SIGINT)
    _, errors = interrupted.communicate(timeout=PATIENCE_S)
    after_interruption = train.journal
    assert interrupted.returncode == INVALID
    assert "the same command continues" in errors
    assert train.trials() == []

    killed = train.start(*options)
    eventually(lambda: len(train.journal) > len(after_interruption) + 6 and train.trials())
    killed.kill()
    killed.communicate(timeout=PATIENCE_S)
    eventually(lambda: train.trials() == [])
    eventually(lambda: benchmarks_of(train) == [])
    with (train.record / "journal.jsonl").open("a") as file:
        file.write('{"trial":1,"blo')

    finished = train.run(*options)

    assert finished.returncode == FOUND, finished.stderr
    assert "continuing after" in finished.stderr
    assert train.journal[: len(after_interruption)] == after_interruption
    assert [json.loads(line) for line in train.journal]
    assert train.trials() == []
    profile = parse_profile((train.record / "profile.toml").read_text(), "trained")
    assert {group.name: str(group.treatment) for group in profile.thread_groups} == BEST
    assert profile.id == "shop"


def test_the_record_has_every_trial_with_its_interval_and_the_stated_error(finished):
    train, done = finished

    text = (train.record / "REPORT.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith(("| 1 |", "| 2 |"))]
    assert done.returncode == FOUND, done.stderr
    assert "**Verdict: the profile is better than the tier alone: +" in text
    assert "with a probability of at most 0.05" in text
    assert len(rows) == 2
    assert all(" % to " in row for row in rows)
    assert "the budget of trials ended first" in text
    assert (train.record / "climb.svg").read_text().count("<circle") == 3
    evidence = tomllib.loads((train.record / "profile.toml").read_text())["evidence"]
    assert evidence["effect"] == "not measured", "an agent that observes has no effect"


def test_the_result_is_measured_against_the_stock_scheduler_on_request(finished):
    train, done = finished

    assert done.returncode == FOUND, done.stderr
    measured = [json.loads(line) for line in train.journal[-8:]]
    stock = [row for row in measured if row["change"] == "the stock scheduler"]
    assert [row["value"] for row in stock] == pytest.approx([200.0] * 4)
    report = (train.record / "REPORT.md").read_text()
    assert "The profile was measured against the stock scheduler on 4 blocks: +" in report
    assert train.stock_requesters() == train.trials() == []


def test_the_agent_shows_the_result_with_the_price_that_others_pay(looked_at):
    train, done = looked_at

    kept = json.loads((train.record / "result.json").read_text())
    shown = train.agent.get("/training").json()["results"][0]
    listed = subprocess.run(
        [TEMPER, "train", "results", "--settings", train.agent.path],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert done.returncode == FOUND, done.stderr
    assert abs(shown.pop("at") - time.time()) < PATIENCE_S
    assert shown == kept
    (trial,) = kept["trials"]
    assert (trial["verdict"], trial["candidate"]["change"]) == ("kept", "the whole profile")
    assert trial["candidate"]["median"] < trial["against"]["median"]
    assert trial["candidate"]["spread"] > 0
    assert kept["verdict"] in listed
    assert "the whole profile" in listed


def test_others_are_seen_waiting_in_each_measurement_that_is_long_enough(looked_at):
    train, done = looked_at

    assert done.returncode == FOUND, done.stderr
    rows = [json.loads(line) for line in train.journal[1:]]
    assert all(row["others_wait"] >= 0 for row in rows)
    kept = json.loads((train.record / "result.json").read_text())
    assert kept["trials"][0]["candidate"]["others_wait"] is not None


def running(train):
    return train.agent.get("/training").json()["running"]


def audited(train):
    events = train.agent.get("/events?kind=request").json()["events"]
    return [each["subject"] for each in events if "/training/runs/" in each["subject"]]


def test_the_agent_shows_a_run_and_ends_it_on_request(train):
    options = ("--rehearse", "--trials", 9, "--minutes", 60)
    run = train.start(*options, benchmark=train.slow(0.3))
    try:
        shown = eventually(lambda: [each for each in running(train) if each["trial"]])[0]
        listed = subprocess.run(
            [TEMPER, "train", "results", "--settings", train.agent.path],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        path = f"/training/runs/{shown['id']}"
        train.agent.client.delete(path).raise_for_status()
        _, errors = run.communicate(timeout=PATIENCE_S)
    finally:
        run.kill()

    assert (shown["workload"], shown["pods"], shown["phase"]) == ("shop", ["spin"], "trial 1")
    assert shown["measured"] >= 9
    assert 0 < shown["left_s"] < 2 * 3600
    assert "shop now\n  trial 1, " in listed
    assert run.returncode == INVALID
    assert "aborted by socket" in errors
    assert "the same command continues" in errors
    assert train.trials() == running(train) == []
    assert [each for each in audited(train) if each.endswith(path)] == [
        f"PUT {path}",
        f"DELETE {path}",
    ]


def test_a_killed_run_is_not_shown_for_ever(train):
    killed = train.start("--rehearse", "--trials", 9)
    eventually(lambda: running(train))
    killed.kill()
    killed.communicate(timeout=PATIENCE_S)

    eventually(lambda: running(train) == [])


def test_an_agent_that_takes_no_result_changes_no_verdict(agent, tmp_path):  # noqa: ARG001 - its program runs
    other = tmp_path / "other"
    other.mkdir()
    without = RunningAgent(other, settings=f'{WORKLOAD}[plugin_host]\nallow = ["linter"]\n')
    try:
        without.wait_for(lambda: (without.observation() or {}).get("pods"), "pods")
        without.path.write_text(without.path.read_text().replace('allow = ["linter"]', ""))
        train = TrainRun(without, tmp_path)

        done = train.run(*ONE_TRIAL)
    finally:
        without.stop()

    assert done.returncode == FOUND, done.stderr
    assert "the agent does not show the result: " in done.stderr
    assert done.stderr.count("the agent does not show the run: ") == 1
    assert (train.record / "result.json").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_ends_under_the_stock_scheduler_leaves_no_request(finished, train, number):
    header, *rows = finished[0].journal
    lines = [json.dumps({**json.loads(header), "stock_blocks": 50}), *rows[:-8]]
    train.record.mkdir(parents=True)
    (train.record / "journal.jsonl").write_text("\n".join(lines) + "\n")

    run = train.start("--rehearse", "--trials", 2, "--stock-blocks", 50)
    eventually(train.stock_requesters)
    during = train.stock_requesters()
    run.send_signal(number)
    run.communicate(timeout=PATIENCE_S)

    eventually(lambda: train.stock_requesters() == [])
    assert set(during) <= {"train-shop"}
    assert run.returncode != FOUND
    assert train.journal[: len(lines)] == lines


def test_a_continued_run_withdraws_the_request_that_a_killed_one_left(train):
    options = (*ONE_TRIAL, "--stock-blocks", 50)
    first = train.start(*options)
    eventually(lambda: len(train.journal) > 2)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=PATIENCE_S)
    request = {"requested": True, "requester": "train-shop", "reason": "left"}
    train.agent.client.put("/safe-mode", json=request).raise_for_status()
    before = len(train.journal)

    second = train.start(*options)
    try:
        eventually(lambda: len(train.journal) > before)

        assert train.stock_requesters() == []
    finally:
        second.send_signal(signal.SIGINT)
        second.communicate(timeout=PATIENCE_S)


def test_outside_of_its_window_a_run_waits_with_nothing_in_force(train):
    now = dt.datetime.now()  # noqa: DTZ005 - a window is of the local time
    window = f"{now + dt.timedelta(hours=2):%H:%M}-{now + dt.timedelta(hours=3):%H:%M}"
    run = train.start("--rehearse", "--window", window)
    try:
        eventually(lambda: train.journal)
        time.sleep(1.0)

        assert len(train.journal) == 1
        assert train.trials() == []
    finally:
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == INVALID
    assert "interrupted after 0 measurements; the same command continues" in errors


def test_a_benchmark_without_an_effect_ends_in_no_improvement_found(train):
    done = train.run(*ONE_TRIAL, "--metric", "digest", benchmark=train.script("digest.py"))

    assert done.returncode == NOTHING, done.stderr
    assert done.stdout.splitlines()[0] == "no improvement found"
    assert not (train.record / "profile.toml").exists()
    assert train.trials() == []


def test_an_agent_that_only_observes_is_refused_without_being_asked_for(train):
    done = train.run()

    assert done.returncode == UNABLE
    assert "the agent only observes" in done.stderr
    assert not train.journal


def test_a_journal_of_another_run_is_refused_by_the_option_that_differs(begun_train):
    done = begun_train.run("--rehearse", "--trials", 2)

    assert done.returncode == INVALID
    assert "is of a run with another trials" in done.stderr


@pytest.mark.parametrize("key", ["machine", "kernel"])
def test_a_journal_of_another_node_is_refused(begun_train, key):
    header, *others = begun_train.journal
    lines = [json.dumps({**json.loads(header), key: "another"}), *others]
    (begun_train.record / "journal.jsonl").write_text("\n".join(lines) + "\n")

    done = begun_train.run(*ONE_TRIAL)

    assert done.returncode == INVALID
    assert f"is of a run with another {key}" in done.stderr


@pytest.mark.parametrize("damage", [{"verdict": "x", "value": None}, {"violations": 5}])
def test_a_damaged_measurement_is_one_line(begun_train, damage):
    header, first, *others = begun_train.journal
    lines = [header, json.dumps({**json.loads(first), **damage}), *others]
    (begun_train.record / "journal.jsonl").write_text("\n".join(lines) + "\n")

    done = begun_train.run(*ONE_TRIAL)

    assert done.returncode == INVALID
    assert done.stderr.splitlines()[-1].endswith("journal.jsonl: line 2: is no measurement")


@pytest.mark.parametrize(
    ("benchmark", "code", "why"),
    [
        ("false", UNABLE, "the benchmark ended with exit code 1"),
        ("no-such-program", INVALID, "--benchmark no-such-program: No such file"),
        ("echo hello", INVALID, "its last line: hello"),
        ("sh -c 'kill -9 $$'", UNABLE, "the benchmark ended with SIGKILL"),
        ("sh -c 'x", INVALID, "No closing quotation"),
    ],
)
def test_a_benchmark_that_fails_at_once_is_one_line_and_begins_nothing(train, benchmark, code, why):
    done = train.run("--rehearse", benchmark=benchmark)

    assert done.returncode == code
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert not train.journal


def test_a_benchmark_that_takes_too_long_is_ended(train):
    done = train.run("--rehearse", "--timeout", 0.5, benchmark="sleep 300")

    assert done.returncode == UNABLE
    assert "the benchmark took more than 0.5 s" in done.stderr


def test_a_candidate_under_which_the_benchmark_fails_is_ended_and_the_climb_goes_on(train):
    text = (HERE / "planted.py").read_text()
    script = train.profile.with_name("fragile.py")
    measured = "    value = 100"
    failing = "    if len(groups_of(path, pod)) > 1:\n        sys.exit(9)\n"
    script.write_text(text.replace(measured, failing + measured))
    command = train.script(script, train.agent.socket, "spin")

    done = train.run("--rehearse", "--trials", 2, benchmark=command)

    assert "the whole profile: +0.0 % in 0 blocks, ended by a guard (the benchmark" in done.stderr
    assert "exit code 9" in done.stderr
    assert "trial 2" in done.stderr
    assert train.trials() == []


def test_a_second_run_of_one_record_is_refused_while_the_first_goes_on(train):
    first = train.start("--rehearse")
    try:
        eventually(lambda: train.journal)

        second = train.run("--rehearse")

        assert second.returncode == INVALID
        assert "another temper train run writes it" in second.stderr
    finally:
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=PATIENCE_S)


def test_a_run_without_time_ends_with_what_it_has(train):
    done = train.run("--rehearse", "--minutes", 0.1)

    assert done.returncode in (FOUND, NOTHING), done.stderr
    assert "--minutes 0.1 have passed" in (train.record / "REPORT.md").read_text()


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden"])
def test_a_workload_is_a_plain_name(train, name):
    done = train.run("--rehearse", "--workload", name)

    assert done.returncode == INVALID
    assert "--workload" in done.stderr
    assert not train.artifacts.exists()


def _of_another_user(directory):
    directory.mkdir(parents=True)
    os.chown(directory, OTHER, OTHER)


def _for_everybody(directory):
    directory.mkdir(parents=True)
    directory.chmod(0o777)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory away needs root")
@pytest.mark.parametrize("made", [_of_another_user, _for_everybody])
@pytest.mark.parametrize("place", ["artifacts", "record"])
def test_no_link_of_another_user_is_followed(train, tmp_path, made, place):
    target = tmp_path / "target"
    target.write_text("kept")
    made(getattr(train, place))
    train.record.mkdir(exist_ok=True)
    for name in ("journal.jsonl", ".REPORT.md.new"):
        (train.record / name).symlink_to(target)

    done = train.run(*ONE_TRIAL)

    assert done.returncode == INVALID
    assert done.stderr.startswith("temper: --artifacts: ")
    assert done.stderr.count("\n") == 1
    assert target.read_text() == "kept"
