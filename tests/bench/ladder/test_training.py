"""The command that trains a profile on the ladder's node, and its benchmarks with real servers."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from bench.ladder.__main__ import parser
from bench.ladder.agent import Files
from bench.ladder.arms import ARMS, TRAINED, with_trained
from bench.ladder.loads import Server
from bench.ladder.node import Node, Programs, pods
from bench.ladder.pods import Cgroups
from bench.ladder.points import Places
from bench.ladder.servers import SERVERS, Installed
from bench.ladder.serving import Site
from bench.ladder.training import Training, TrainingFailed, train, training_command
from temper_plugin_trainer.commands.train_auto import auto_command
from temper_plugin_trainer.refining.benchmark import Asked, read_result

CHECKOUT = Path(__file__).parents[3]
SOURCE = CHECKOUT / "tests/kernel/training/pool.c"
SIZE = Server(seconds=0.3, period_us=8_000, turns=1, servers=1)
PROFILE = (CHECKOUT / "training-artifacts/pool/profile.toml").read_text()


@pytest.fixture
def node(tmp_path):
    places = Places(tmp_path / "load", tmp_path, tmp_path, tmp_path)
    programs = Programs(tmp_path / "load", tmp_path / "engine", Path("/opt/temper"))
    return Node(Cgroups(tmp_path), programs, Files(tmp_path), places, tmp_path, 1500)


@pytest.fixture
def pool(tmp_path):
    """The pool of threads as the ladder starts it, its directory, and its process."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: scripts/install-compiler installs it as root")
    program, directory = tmp_path / "program", tmp_path / "server"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, SOURCE], check=True)
    directory.mkdir()
    command = SERVERS["pool"].serve(Installed(pool=program), directory)
    started = subprocess.Popen(list(map(str, command)))
    yield directory
    started.kill()
    started.wait()


def test_the_arm_of_a_trained_profile_names_it_in_the_annotation_of_the_pod():
    arms = with_trained(PROFILE)

    assert pods(arms[TRAINED], 1500)[0].profile == "pool"
    assert with_trained("") is ARMS


def test_the_command_has_options_that_it_takes_and_the_client_as_its_benchmark(node):
    training = Training("redis-backup", SERVERS["redis-backup"], 8, Path("/out"), ("--trials", "3"))

    program, *words = training_command(training, Path("/server"), node, SIZE)

    assert [program, *words[:2]] == ["/opt/temper", "train", "auto"]
    given = auto_command.make_context("auto", words[2:], resilient_parsing=True).params
    assert (given["pod"], given["metric"], given["trials"]) == ("ladder/api", "mean", 3)
    assert (given["artifacts"], given["workload"]) == (Path("/out"), "redis-backup")
    benchmark = shlex.split(given["benchmark"])
    assert benchmark[0] == "taskset"
    assert benchmark[-1] == "mean"


def test_a_server_whose_client_prints_no_metric_is_refused(node):
    training = Training("mysql", SERVERS["mysql"], 8, Path("/out"))

    with pytest.raises(TrainingFailed, match="mysql: its client prints no metric"):
        train(training, Site(node.places, Installed()), node, SIZE)


def test_the_pool_answers_its_client_and_is_a_benchmark(pool):
    server = SERVERS["pool"]
    call = list(map(str, server.call(pool, SIZE, 1)))

    as_client, as_benchmark = (
        subprocess.run([*call, *more], check=True, capture_output=True, text=True, cwd=CHECKOUT)
        for more in ([], [server.measures])
    )

    begins, printed = as_client.stdout.splitlines()
    assert begins == server.begins
    assert all(latency > 0 for latency in server.answers(printed).latencies_ms)
    assert read_result(as_benchmark.stdout, Asked("mean")).unit == "ms"


def test_a_round_whose_client_is_told_to_end_leaves_no_answer_for_the_next(pool):
    call = list(map(str, SERVERS["pool"].call(pool, Server(60.0, 8_000, 1, 1), 1)))
    client = subprocess.Popen(call, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)
    assert client.stdout.readline() == "begin\n"
    time.sleep(0.2)

    client.send_signal(signal.SIGTERM)
    printed, _ = client.communicate()

    assert client.returncode == 0
    assert json.loads(printed)["latencies_ns"]
    answers = os.open(pool / "answers", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(BlockingIOError):
        os.read(answers, 1)
    os.close(answers)


def test_a_training_is_one_point():
    needed = ["--load", "load", "--engine", "engine", "--records", "records"]

    options = parser().parse_args(
        [*needed, "--train", "pool:8", "--arms", "tiers,trained", "--pool", "p"]
    )

    assert options.pool == Path("p")
    assert options.train == [("pool", 8)]
    assert options.arms == ["tiers", "trained"]
