"""The relay of ``kubectl temper train`` before a real agent, and the values that a run prints."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from temper_core import InputError, MachineError
from temper_kube.kubectl import Conversation
from temper_plugin_trainer.remote.channel import LONGEST_LINE_BYTES, Channel
from temper_plugin_trainer.remote.relay import Relay
from temper_plugin_trainer.remote.relay_client import RelayClient
from temper_plugin_trainer.remote.values_patch import values_patch
from tests.patience import PATIENCE_S
from tests.trainer.refining.surfaces import PROFILE

TEMPER = str(Path(sys.executable).with_name("temper"))
STOCK = {"requested": True, "requester": "train-shop", "reason": "it"}
BEGIN = {
    "path": "/trials",
    "method": "POST",
    "body": {"profile": PROFILE, "pods": ["spin"], "seconds": 600},
}
REQUEST = {"path": "/safe-mode", "method": "PUT", "body": STOCK}


@pytest.fixture
def relay(agent):
    """A relay that has answered what begins a trial, and what requests safe mode."""
    process = subprocess.Popen(
        [TEMPER, "train", "relay", "--settings", str(agent.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("".join(json.dumps(each) + "\n" for each in (BEGIN, {}, REQUEST)))
    process.stdin.flush()
    process.answers = [json.loads(process.stdout.readline()) for _ in range(4)]
    yield process
    process.kill()
    process.communicate()


def _standing(agent):
    requests = agent.get("/safe-mode").json()["requests"]
    return len(agent.get("/trials").json()["trials"]), list(requests)


def test_what_came_through_a_relay_ends_with_its_input(agent, relay):
    greeting, begun, refused, requested = relay.answers
    assert greeting["schema_version"] == 1
    assert greeting["kernel"] == os.uname().release
    assert begun["answer"]["id"]
    assert refused == {"error": "the relay needs a path", "exit_code": 2}
    assert requested["answer"]
    assert _standing(agent) == (1, ["train-shop"])

    relay.stdin.close()
    code = relay.wait(PATIENCE_S)
    relay.stdin = None

    assert code == 0
    assert _standing(agent) == (0, [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_as_the_end_of_the_input_does(agent, relay, number):
    assert _standing(agent) == (1, ["train-shop"])

    relay.send_signal(number)
    relay.wait(PATIENCE_S)

    assert _standing(agent) == (0, [])


def test_several_signals_in_a_row_leave_nothing(agent, relay):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        relay.send_signal(number)
    relay.wait(PATIENCE_S)

    assert _standing(agent) == (0, [])


def test_a_relay_whose_answers_are_not_read_ends_by_a_signal(agent, relay):
    relay.stdin.write('{"path": "/openapi.json"}\n' * 8)
    relay.stdin.flush()
    time.sleep(1.0)

    relay.send_signal(signal.SIGTERM)
    relay.wait(PATIENCE_S)

    assert _standing(agent) == (0, [])


def test_an_answer_that_nobody_reads_is_an_error():
    reading, writing = os.pipe()
    try:
        with pytest.raises(MachineError, match=r"no answer was read for 0\.2 s"):
            Channel(-1, writing, silence_s=0.2).write("x" * LONGEST_LINE_BYTES)
    finally:
        os.close(reading)
        os.close(writing)


def test_lines_end_with_their_source_and_silence_is_an_error():
    reading, writing = os.pipe()
    os.write(writing, b"one\n\ntw")
    try:
        lines = Channel(reading, -1, silence_s=0.2).lines()
        assert [next(lines), next(lines)] == [b"one", b""]
        with pytest.raises(MachineError, match=r"heard nothing for 0\.2 s"):
            next(lines)

        os.write(writing, b"o\n")
        os.close(writing)
        assert list(Channel(reading, -1, silence_s=30).lines()) == [b"o"]
    finally:
        os.close(reading)


def test_a_line_that_is_too_long_is_refused(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"x" * (LONGEST_LINE_BYTES + 1))
    with path.open("rb") as file, pytest.raises(InputError, match="a line has more than"):
        list(Channel(file.fileno(), -1).lines())


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"5",
        b'{"path": 5}',
        b'{"path": "/x", "host": "y"}',
        b'{"path": "/x", "method": 5}',
        b'{"path": "/x", "method": "TRACE"}',
        b'{"path": "/x", "query": 5}',
        b'{"path": "/x", "query": {"hours": 5}}',
    ],
)
def test_a_request_that_is_none_is_refused_and_asks_nothing(line):
    def ask(*_, **__):
        pytest.fail("asked")

    answer = Relay(ask).answer(line)

    assert answer["exit_code"] == 2
    assert "the relay" in answer["error"]


def test_what_a_relay_says_of_its_node_is_one_short_line(tmp_path):
    machine = "a\n\n# Approved\n" + "x" * 10_000
    greeting = {"schema_version": 1, "machine": machine, "kernel": "6.18\r\n"}
    said = tmp_path / "said"
    said.write_text(json.dumps(greeting) + "\n")
    command = ["cat", str(said)]
    with (
        (tmp_path / "errors").open("w+b") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process,
    ):
        facts = RelayClient(Conversation("agent", process, errors)).greeting()

    assert facts.machine.startswith("a # Approved xxx")
    assert len(facts.machine) <= 400
    assert facts.kernel == "6.18"


@pytest.mark.parametrize("text", ['id = "a"\n\n# x\n', 'id = "\u2028é"\n', " a\n", "a", "\ta\n"])
def test_printed_values_have_the_profile_as_it_is(text):
    printed = values_patch("shop", text, ["what it is"])

    assert printed.startswith("# what it is\n")
    assert yaml.safe_load(printed) == {"agent": {"profiles": {"shop.toml": text}}}
