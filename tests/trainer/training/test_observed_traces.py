"""``temper train observe --trace``: a real capture of a real pod, where BPF is allowed."""

import signal
import subprocess

import pytest

from temper_plugin_trainer.refining.door_traces import MOST_BYTES
from temper_plugin_trainer.training.bundles import read_bundle
from tests.own_host import NO_OWN_HOSTS, has_own_hosts
from tests.trainer.refining.test_arm_traces import agent, program, require_bpf, running_agent
from tests.trainer.refining.test_train_run import TEMPER, eventually

__all__ = ["agent", "program"]

pytestmark = pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS)


def command_of(agent, output, *options):
    words = ["--pod", "spin", "--seconds", 3, "-o", output, "--settings", agent.path, *options]
    return [TEMPER, "train", "observe", *map(str, words)]


def observe(agent, output, *options):
    command = command_of(agent, output, *options)
    return subprocess.run(command, check=False, capture_output=True, text=True)


def analyze(*options):
    command = [TEMPER, "train", "analyze", *map(str, options)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_a_bundle_has_a_bounded_trace_that_can_be_taken_out_and_read(agent, tmp_path):
    require_bpf()
    bundle, trace = tmp_path / "spin.gz", tmp_path / "spin.pftrace"

    done = observe(agent, bundle, "--trace")

    assert "a trace of" in done.stderr, done.stderr
    assert analyze(bundle, "--trace", trace).returncode == 0
    assert 0 < trace.stat().st_size <= MOST_BYTES
    command = [TEMPER, "trace", "analyze", str(trace)]
    assert "sleep" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert agent.get("/traces").json()["traces"] == []


def test_an_agent_without_the_plugin_says_why_there_is_no_trace(program, tmp_path):
    folder, bundle = tmp_path / "agent", tmp_path / "spin.gz"
    folder.mkdir()
    with running_agent(folder, program, '[plugin_host]\nallow = ["trainer"]\n') as alone:
        done = observe(alone, bundle, "--trace")

    assert "without a trace: the agent answers: there is no /traces here" in done.stderr
    assert read_bundle(bundle).trace.content == ""
    taken = analyze(bundle, "--trace", tmp_path / "no.pftrace")
    assert taken.returncode == 2
    assert taken.stderr.count("\n") == 1
    assert "has no trace: the agent answers" in taken.stderr
    assert not (tmp_path / "no.pftrace").exists()


def test_an_interrupted_capture_leaves_none_and_the_bundle_is_kept(agent, tmp_path):
    require_bpf()
    bundle = tmp_path / "spin.gz"
    begun = subprocess.Popen(
        command_of(agent, bundle, "--trace"), stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: agent.get("/traces").json()["traces"])

    begun.send_signal(signal.SIGINT)
    _, errors = begun.communicate()

    assert "without a trace: interrupted" in errors
    assert read_bundle(bundle).threads
    assert agent.get("/traces").json()["traces"] == []


def test_a_trace_needs_an_agent(tmp_path):
    words = ["--command", "sleep 1", "-o", tmp_path / "x.gz", "--no-agent", "--trace"]
    command = [TEMPER, "train", "observe", *map(str, words)]

    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode == 2
    assert "--trace asks an agent" in done.stderr
