"""``kubectl temper trace`` with a real agent. Only kubectl is a fake.

``tests/kubernetes/tools/test_kubectl_trace.py`` asks the real one.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_plugin_tracer.trace.perfetto.reader import PerfettoTrace
from temper_plugin_tracer.trace.reading import PERFETTO
from tests.own_host import ENVIRONMENT, TEMPER, until
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.usefixtures("bpf")
FAKE = Path(__file__).with_name("fake_kubectl.py")
ENDLESS = Path(__file__).with_name("endless_agent.py")


def pod(name, namespace, node="node-a", phase="Running"):
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": node},
        "status": {"phase": phase, "conditions": conditions},
    }


class Cluster:
    """A folder of objects, and kubectl temper on it."""

    def __init__(self, folder, enter, options):
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir(parents=True)
        (folder / "objects").mkdir()
        (folder / "host.json").write_text(json.dumps({"enter": enter, "options": options}))
        kubectl = self.programs / "kubectl"
        kubectl.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
        kubectl.chmod(0o755)
        (self.programs / "temper").symlink_to(TEMPER)
        self.put("pod.web", pod("web", "shop"))
        self.put("pods", {"items": [pod("temper-agent-x", "temper")]})

    def put(self, name, document):
        (self.folder / "objects" / f"{name}.json").write_text(json.dumps(document))

    @property
    def environment(self):
        path = f"{self.programs}:{os.environ['PATH']}"
        return {**ENVIRONMENT, "PATH": path, "FAKE_KUBECTL": str(self.folder)}

    def trace(self, *words):
        return self.temper("trace", *words)

    def temper(self, *words):
        return subprocess.run(
            [TEMPER, "k8s", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
            env=self.environment,
            cwd=self.folder,
        )

    def log(self):
        return [json.loads(line) for line in (self.folder / "log").read_text().splitlines()]


@pytest.fixture
def cluster(tmp_path, host, settings):
    """A cluster of one node, whose agent is the host's."""
    return Cluster(tmp_path / "cluster", host.command(), ["--settings", str(settings)])


@pytest.fixture
def lone(tmp_path):
    """A cluster in which no command is carried out."""
    return Cluster(tmp_path / "cluster", ["false"], [])


def test_a_pod_is_captured_on_its_node_and_the_trace_is_copied_here(cluster):
    told = cluster.trace("shop/web", "--seconds", "0.5", "--output", "json")

    assert told.returncode == 0, told.stderr
    entry, path = json.loads(told.stdout), cluster.folder / "web.pftrace"
    assert (entry["node"], entry["file"]) == ("node-a", "web.pftrace")
    assert path.stat().st_size == entry["bytes"]
    assert sum(map(len, PerfettoTrace(path).blocks())) == entry["events"]
    [captured, copied] = cluster.log()
    assert captured[:3] == ["--namespace=temper", "temper-agent-x", "--"]
    assert {"--pod=shop/web", "--seconds=0.5"} <= set(captured)
    assert copied[-2:] == ["--out=-", "--offset=0"]


def test_a_copy_that_breaks_off_goes_on_where_it_ended(cluster):
    (cluster.folder / "cut").write_text("1000")
    out = cluster.folder / "x.pftrace"

    told = cluster.trace("web", "--seconds", "0.5", "--out", str(out), "--output", "json")

    assert told.returncode == 0, told.stderr
    assert out.stat().st_size == json.loads(told.stdout)["bytes"]
    assert sum(map(len, PerfettoTrace(out).blocks())) == json.loads(told.stdout)["events"]
    assert [words[-1] for words in cluster.log()[1:]] == ["--offset=0", "--offset=1000"]


def test_a_copy_of_which_nothing_arrives_fails_and_leaves_no_file(cluster):
    (cluster.folder / "cut").write_text("0")

    told = cluster.trace("web", "--seconds", "0.5")

    assert told.returncode == 3
    assert "temper: temper-agent-x: failed without a message" in told.stderr
    assert not list(cluster.folder.glob("*.pftrace")) + list(cluster.folder.glob(".*.partial"))


def test_a_trace_is_printed(cluster):
    command = [TEMPER, "k8s", "trace", "web", "--seconds", "0.5", "--out", "-"]
    told = subprocess.run(
        command, capture_output=True, check=True, env=cluster.environment, cwd=cluster.folder
    )

    assert told.stdout.startswith(PERFETTO)
    assert b"node-a: trace " in told.stderr
    assert not list(cluster.folder.glob("-*"))


def test_a_trace_that_cannot_be_copied_stays_and_the_way_to_it_is_told(cluster):
    told = cluster.trace("web", "--seconds", "0.5", "--out", "/dev/full")

    assert told.returncode == 2
    assert "/dev/full: No space left on device; the agent keeps the trace" in told.stderr
    fetching = "kubectl exec --namespace=temper temper-agent-x -- temper trace fetch"
    assert fetching in told.stderr
    assert told.stderr.endswith("--out=- > FILE\n")


@pytest.mark.parametrize("words", [("trace", "web"), ("trace-compare", "web", "web")])
def test_nothing_is_captured_for_a_file_that_cannot_be_written(lone, words):
    for name in ("web.pftrace", "2-web.pftrace"):
        (lone.folder / name).mkdir()

    told = lone.temper(*words)

    assert told.returncode == 2
    assert told.stderr.endswith("web.pftrace: is a directory\n")
    assert not (lone.folder / "log").exists()


def test_ctrl_c_ends_the_recording_and_what_there_is_is_copied(cluster, host, settings):
    command = [TEMPER, "k8s", "trace", "web", "--seconds", "30", "--output", "json"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=cluster.environment, cwd=cluster.folder
    )
    listed = ("trace", "list", "--settings", str(settings))
    until(lambda: "recording" in host.temper(*listed).stdout, settings.with_name("log"))
    time.sleep(1.0)
    running.send_signal(signal.SIGINT)
    told, _ = running.communicate(timeout=PATIENCE_S)

    assert running.returncode == 0
    entry = json.loads(told)
    assert entry["ended_by"] == "asked"
    assert entry["seconds"] < 30
    assert (cluster.folder / "web.pftrace").stat().st_size == entry["bytes"]


def test_a_node_that_is_captured_already_refuses_with_who_and_how_long(cluster, host, settings):
    words = ("trace", "capture", "--seconds", "30", "--settings", str(settings))
    running = subprocess.Popen(host.command(TEMPER, *words), env=ENVIRONMENT)
    listed = ("trace", "list", "--settings", str(settings))
    until(lambda: "recording" in host.temper(*listed).stdout, settings.with_name("log"))

    told = cluster.trace("web")

    host.shell("kill -INT $(pgrep -f '[t]emper trace capture')")
    running.wait(timeout=PATIENCE_S)
    assert told.returncode == 2
    assert "temper-agent-x: the agent answers: " in told.stderr
    assert "command terminated" not in told.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("none",), 2, 'Error from server (NotFound): pods "none" not found'),
        (("-x",), 2, "No such option"),
        (("shop/a/b",), 2, "'shop/a/b' is not the name of a pod: [NAMESPACE/]NAME"),
        (("--", "-x"), 2, "'-x' is not the name of a pod: [NAMESPACE/]NAME"),
        (("waiting",), 3, "the pod shop/waiting does not run: Pending"),
        (("web", "--namespace", "../x"), 2, "--namespace '../x' is not the name of a namespace"),
        (("web", "--seconds", "31"), 2, "--seconds"),
        (("web",), 3, "no agent runs on the node node-a (namespace temper)"),
    ],
)
def test_what_cannot_be_captured_is_one_line(lone, words, code, message):
    lone.put("pod.waiting", pod("waiting", "shop", "", "Pending"))
    lone.put("pods", {"items": [pod("temper-agent-x", "temper", phase="Failed")]})

    told = lone.trace(*words)

    assert told.returncode == code
    assert message in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("answer", ["", "[]", "{}", '"x"', '{"items": 1}', "[" * 100_000])
def test_answers_that_are_no_objects_are_errors_of_one_line(lone, answer):
    (lone.folder / "objects/pod.web.json").write_text(answer)
    (lone.folder / "objects/pods.json").write_text(answer)

    told = lone.trace("web")

    assert told.returncode == 3
    assert told.stderr.count("\n") == 1


def test_without_kubectl_that_is_the_error(lone):
    (lone.programs / "kubectl").unlink()
    told = subprocess.run(
        [TEMPER, "k8s", "trace", "web"],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "PATH": str(lone.programs)},
    )

    assert (told.returncode, told.stderr) == (3, "temper: kubectl is not on the PATH\n")


def test_text_of_the_cluster_does_not_control_the_terminal(lone):
    lone.put("pod.web", pod("web\x1b[2J", "shop", phase="\x9b2J\x1b]0;x\x07"))

    told = lone.trace("web")

    assert told.returncode == 3
    assert not set("\x1b\x07\x9b") & set(told.stdout + told.stderr)


@pytest.mark.parametrize("name", ["--kubeconfig=/x", "-v=9", "../x", "", "a\x00b"])
def test_a_name_of_the_api_server_is_no_option_of_kubectl(lone, name):
    lone.put("pods", {"items": [pod(name, "temper")]})

    told = lone.trace("web")

    assert told.returncode == 3
    assert "kubectl answers with a pod whose name is" in told.stderr
    assert told.stderr.count("\n") == 1
    assert not (lone.folder / "log").exists()


@pytest.mark.parametrize("node", ["--kubeconfig=/x", "n,metadata.name=x", "a b"])
def test_a_node_of_the_api_server_is_one_name(lone, node):
    lone.put("pod.web", pod("web", "shop", node=node))

    told = lone.trace("web")

    assert told.returncode == 3
    assert "kubectl answers with a pod whose node is" in told.stderr


def test_a_container_whose_errors_never_end_fills_no_disk(lone):
    (lone.programs / "kubectl").write_text(
        f"#!/bin/sh\ncase $* in *\\ exec\\ *|exec*) exec yes error >&2;; esac\n"
        f'exec {sys.executable} {FAKE} "$@"\n'
    )

    told = lone.trace("web")

    assert told.returncode == 3
    assert told.stderr.startswith("temper: temper-agent-x: error")


def test_a_name_of_the_api_server_is_no_path(lone):
    lone.put("pod.web", pod("../web", "shop"))

    told = lone.trace("web")

    assert told.returncode == 3
    assert "a pod whose name is '../web'" in told.stderr


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (1000, "sends more than the 1000 bytes of the trace"),
        (1 << 40, "has a trace of 1048576 MiB"),
    ],
)
def test_an_agent_that_sends_without_end_does_not_fill_the_disk(tmp_path, size, said):
    endless = Cluster(tmp_path / "cluster", [sys.executable, str(ENDLESS), str(size)], [])

    told = endless.trace("web", "--out", "x.pftrace")

    assert told.returncode == 3
    assert said in told.stderr
    assert not list(endless.folder.glob("*.pftrace")) + list(endless.folder.glob(".*.partial"))
