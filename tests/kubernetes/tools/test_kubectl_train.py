"""``kubectl temper train`` with the real kubectl, the real API server and a real agent.

No kubelet is there, so ``kubectl exec`` runs the agent's command on this machine. The real one is
tried on a node: ``tests/kubernetes/node``. Its refusals are those of the API server here.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from temper_core import parse_profile
from temper_kube.kubectl import Kubectl
from temper_kube.placing import place
from temper_plugin_trainer.remote.canary import canary_of
from temper_plugin_trainer.remote.pod_watch import ABORT
from tests.control_plane.cluster import pod, unique, wait_until
from tests.core.agent.running_agent import RunningAgent
from tests.kubernetes.tools.conftest import OUTSIDE
from tests.patience import PATIENCE_S
from tests.trainer.refining.planted import BEST, MEASURED
from tests.trainer.refining.surfaces import PROFILE

TEMPER = Path(sys.executable).with_name("temper")
PLANTED = Path(__file__).parents[2] / "trainer/refining/planted.py"
LABELS = {"app.kubernetes.io/name": "temper", "app.kubernetes.io/component": "agent"}
FOUND, NOTHING, INVALID, UNABLE = 0, 1, 2, 3
SECONDS = 15
"""For what is to happen within seconds, on a busy machine."""
EXEC = """#!/bin/sh
case " $* " in
*" exec "*) while [ "$1" != -- ]; do shift; done; shift; exec "$@" --settings {settings} ;;
*) exec {kubectl} "$@" ;;
esac
"""
RIGHTS = {
    "kind": "ClusterRole",
    "metadata": {"name": "trains"},
    "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]},
    ],
}


class Training:
    """A node with an agent and a pod, and the command for that pod."""

    def __init__(self, cluster, node, directory):
        self.cluster, self.node, self.directory = cluster, node, directory
        self.name, self.agent_pod = f"shop-{node}", f"agent-{node}"
        self.pod = f"default/{self.name}"
        self.kubeconfig = cluster.directory / "kubeconfig"
        self._path = cluster.environment["PATH"]
        self._run_pod(pod(self.name, node, cpu="2"))
        self._run_pod(pod(self.agent_pod, node, "temper", labels=LABELS))
        self.agent = RunningAgent(
            directory,
            settings='source = "kubernetes"\n[plugins.kubernetes]\n'
            f'kubeconfig = "{self.kubeconfig}"\nnode = "{node}"\n',
            own_run=True,  # an agent beside one that may enforce writes nothing to the cluster
        )
        self.agent.wait_for(
            lambda: self.agent.get(f"/explain?pod={self.pod}").status_code == 200, "pod"
        )
        self.profile = directory / "shop.toml"
        self.profile.write_text(PROFILE)
        self.artifacts = directory / "artifacts"

    def _run_pod(self, document):
        made = self.cluster.make(document)
        conditions = [{"type": "Ready", "status": "True"}]
        self.cluster.patch(
            made, {"status": {"phase": "Running", "conditions": conditions}}, "/status"
        )

    def exec_here(self):
        """Let ``kubectl exec`` run on this machine."""
        folder = self.directory / "bin"
        folder.mkdir()
        kubectl = shutil.which("kubectl", path=self._path)
        program = folder / "kubectl"
        program.write_text(EXEC.format(settings=self.agent.path, kubectl=kubectl))
        program.chmod(0o755)
        self._path = f"{folder}:{TEMPER.parent}:{self._path}"

    def command(self, *options, benchmark=None):
        planted = [sys.executable, "-I", "-S", PLANTED, self.agent.socket, self.pod]
        given = {
            "--benchmark": benchmark or shlex.join(map(str, planted)),
            "--metric": MEASURED,
            "--profile": self.profile,
            "--artifacts": self.artifacts,
            "--warm-up": 0,
        }
        pairs = [str(part) for pair in given.items() for part in pair]
        return [str(TEMPER), "k8s", "train", self.pod, *pairs, "--rehearse", *map(str, options)]

    def start(self, *options, kubeconfig=None, **given):
        environment = {
            **OUTSIDE,
            "KUBECONFIG": str(kubeconfig or self.kubeconfig),
            "PATH": self._path,
        }
        return subprocess.Popen(
            self.command(*options, **given),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options, **given):
        run = self.start(*options, **given)
        stdout, stderr = run.communicate(timeout=300)
        return subprocess.CompletedProcess(run.args, run.returncode, stdout, stderr)

    def annotate(self, value):
        document = {"kind": "Pod", "metadata": {"name": self.name}}
        self.cluster.patch(document, {"metadata": {"annotations": {ABORT: value}}})

    def trials(self):
        return self.agent.get("/trials").json()["trials"]

    def is_under_way(self):
        journal = self.artifacts / "shop/journal.jsonl"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return len(lines) > 11 and bool(self.trials())

    def relays(self):
        """Return the processes of the relay of this agent."""
        return [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if {b"relay", str(self.agent.path).encode()} <= set(_words(path))
        ]

    def files(self):
        """Return the files of the agent, without what it writes itself."""
        own = {"log", "agent.sock", "events.jsonl"}
        run = self.directory / "run"
        return {path.name for path in run.rglob("*") if path.is_file()} - own


def _words(path):
    try:
        return path.read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.fixture
def train(cluster, node, tmp_path):
    made = Training(cluster, node, tmp_path)
    yield made
    made.agent.stop()
    for name, namespace in ((made.name, "default"), (made.agent_pod, "temper")):
        cluster.delete({"kind": "Pod", "metadata": {"name": name, "namespace": namespace}})


@pytest.fixture
def local(train):
    """The same, with ``kubectl exec`` on this machine."""
    train.exec_here()
    return train


def ended(run, seconds=PATIENCE_S):
    _, errors = run.communicate(timeout=seconds)
    return run.returncode, errors.strip().splitlines()[-1]


def test_a_run_finds_the_planted_optimum_and_prints_it_as_values_for_the_chart(local):
    done = local.run("--trials", 7, "--seed", 4)

    assert done.returncode == FOUND, done.stderr
    values = yaml.safe_load(done.stdout)
    [(file, text)] = values["agent"]["profiles"].items()
    profile = parse_profile(text, "printed")
    assert (file, profile.id) == ("shop.toml", "shop")
    assert {group.name: str(group.treatment) for group in profile.thread_groups} == BEST
    assert text == (local.artifacts / "shop/profile.toml").read_text()
    (shown,) = local.agent.get("/training").json()["results"]
    kept = json.loads((local.artifacts / "shop/result.json").read_text())
    assert {**shown, "at": None} == {**kept, "at": None}
    assert f"# {local.pod} on {local.node}: the profile is better" in done.stdout
    assert local.trials() == local.relays() == []


def test_without_an_improvement_the_output_has_comments_alone(local):
    digest = shlex.join([sys.executable, str(PLANTED.with_name("digest.py"))])

    done = local.run("--trials", 1, "--metric", "digest", benchmark=digest)

    assert done.returncode == NOTHING, done.stderr
    assert "no improvement found" in done.stdout
    assert yaml.safe_load(done.stdout) is None


def test_the_annotation_ends_the_trial_within_seconds_and_leaves_nothing(local):
    before = local.files()
    run = local.start("--blocks", 200)
    wait_until(local.is_under_way, "a trial", PATIENCE_S)

    local.annotate("true")
    wait_until(lambda: not local.trials() and not local.relays(), "its end", SECONDS)

    code, line = ended(run)
    assert code == INVALID
    assert f"aborted by the annotation {ABORT} of {local.pod} after " in line
    time.sleep(1)
    assert local.trials() == []
    assert local.files() == before

    code, line = ended(local.start())
    assert (code, "remove it to train" in line) == (INVALID, True)
    local.annotate("false")
    again = local.start("--blocks", 200)
    wait_until(local.trials, "another trial", PATIENCE_S)
    again.send_signal(signal.SIGINT)
    assert ended(again)[0] == INVALID


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing(local, number):
    run = local.start("--blocks", 200)
    wait_until(local.is_under_way, "a trial", PATIENCE_S)

    run.send_signal(number)
    run.communicate(timeout=PATIENCE_S)

    wait_until(lambda: not local.trials() and not local.relays(), "its end", SECONDS)
    assert run.returncode == (INVALID if number == signal.SIGINT else -number)


def test_a_pod_that_is_replaced_ends_the_run(local):
    run = local.start("--blocks", 200)
    wait_until(local.is_under_way, "a trial", PATIENCE_S)

    local.cluster.delete({"kind": "Pod", "metadata": {"name": local.name}})

    code, line = ended(run)
    assert code == INVALID
    assert local.name in line
    wait_until(lambda: not local.relays(), "its end", SECONDS)


def test_an_agent_that_goes_is_one_line(local):
    run = local.start("--blocks", 200)
    wait_until(local.is_under_way, "a trial", PATIENCE_S)

    local.agent.process.kill()

    code, line = ended(run)
    assert code == UNABLE
    assert line.startswith(f"temper: {local.agent_pod}: ")
    wait_until(lambda: not local.relays(), "its end", SECONDS)


def test_a_connection_that_breaks_off_is_one_line_and_its_trial_ends(local):
    run = local.start("--blocks", 200)
    wait_until(local.is_under_way, "a trial", PATIENCE_S)

    for relay in local.relays():
        os.kill(relay, signal.SIGTERM)

    code, line = ended(run)
    assert code == UNABLE
    assert line.startswith(f"temper: {local.agent_pod}: ")
    wait_until(lambda: not local.trials(), "its end", SECONDS)


def test_a_wrong_token_is_one_line(train, kubeconfig_of):
    done = train.run(kubeconfig=kubeconfig_of({"token": "wrong"}))

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (UNABLE, "", 1)
    assert "Unauthorized" in done.stderr or "must be logged in" in done.stderr


@pytest.mark.parametrize(("resource", "verb"), [("pods", "get"), ("pods/exec", "create")])
def test_a_missing_right_is_one_line(train, kubeconfig_of, resource, verb):
    account = train.cluster.account_with_all_but(RIGHTS, resource, verb)

    done = train.run(kubeconfig=kubeconfig_of({"token": train.cluster.token(account)}))

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (UNABLE, "", 1)
    assert "orbidden" in done.stderr
    assert resource in done.stderr
    assert not train.artifacts.exists()


@pytest.mark.parametrize(("fraction", "taken"), [(0.2, 1), (0.7, 2), (1.0, 2)])
def test_a_fraction_is_of_the_pods_of_the_owner_and_on_the_same_node(
    train, cluster, monkeypatch, fraction, taken
):
    for name in ("PATH", "KUBECONFIG"):
        monkeypatch.setenv(name, cluster.environment[name])
    owner, other = unique("owner"), unique("elsewhere")
    cluster.node(other)
    owned = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop", "controller": True}
    references = {"ownerReferences": [{**owned, "uid": owner}]}
    names = [unique("web") for _ in range(3)]
    for name, node in zip(names, (train.node, train.node, other), strict=True):
        cluster.run(pod(name, node, **references))
    try:
        kubectl = Kubectl()
        placed = place(kubectl, f"default/{names[0]}", "temper")

        canary = canary_of(kubectl, placed, fraction)

        assert list(canary.uids) == names[:taken]
        assert canary.pods[0] == f"default/{names[0]}"
    finally:
        cluster.without_node(other)


def test_a_fraction_of_a_pod_without_an_owner_is_refused(train):
    done = train.run("--fraction", "0.5")

    assert done.returncode == INVALID
    assert "--fraction" in done.stderr
    assert "has no owner" in done.stderr
