import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from temper_core.cli.main import run as run_temper
from temper_plugin_kubernetes.operators.doctor import command
from tests.kube_client.made_server import MadeServer
from tests.kubernetes.tools.made_cluster import Objects
from tests.kubernetes.tools.made_objects import installation_of

TEMPER = str(Path(sys.executable).with_name("temper"))
PLUGIN = str(Path(sys.executable).with_name("kubectl-temper"))
TIERS = ("critical", "high", "normal", "low", "background")
OUTSIDE = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}


def said(*arguments, kubeconfig="", **environment):
    """Run a program as an operator would, outside of any cluster."""
    given = {**OUTSIDE, **environment, **({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})}
    return subprocess.run(
        [str(each) for each in arguments],
        env=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def here(*arguments, kubeconfig="", **environment):
    """Run ``temper`` in this process, outside of any cluster: a start of Python takes seconds."""
    runner = CliRunner()
    with pytest.MonkeyPatch.context() as patch:
        for key in set(os.environ) - set(OUTSIDE):
            patch.delenv(key)
        if kubeconfig:
            patch.setenv("KUBECONFIG", str(kubeconfig))
        for key, value in environment.items():
            patch.setenv(key, value)
        patch.setattr(sys, "argv", ["temper", *map(str, arguments)])
        with runner.isolation() as (stdout, stderr, _):
            code = run_temper()
    outputs = {"stdout": stdout.getvalue().decode(), "stderr": stderr.getvalue().decode()}
    return SimpleNamespace(returncode=code, **outputs)


@pytest.fixture
def k8s(cluster):
    """Run ``temper k8s`` as the cluster's administrator, or by another kubeconfig."""

    def run(*arguments, kubeconfig=None):
        return here("k8s", *arguments, kubeconfig=kubeconfig or cluster.directory / "kubeconfig")

    return run


@pytest.fixture
def made():
    """An API server that says what the test wants."""
    server = MadeServer()
    server.answers["/api/v1/namespaces/temper"] = {"metadata": {"name": "temper"}}
    yield server
    server.close()


@pytest.fixture
def kubeconfig_to(tmp_path):
    """Write a kubeconfig that leads to some URL."""

    def write(url, user=None, name="kubeconfig", **cluster_keys):
        path = tmp_path / name
        path.write_text(
            json.dumps(
                {
                    "current-context": "it",
                    "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
                    "clusters": [{"name": "it", "cluster": {"server": url, **cluster_keys}}],
                    "users": [{"name": "me", "user": user or {}}],
                }
            )
        )
        return path

    return write


@pytest.fixture
def ask(made, kubeconfig_to):
    """Run ``temper k8s`` against the server that was made."""
    kubeconfig = kubeconfig_to(made.url, name="to-the-made-server")

    def run(*arguments):
        return here("k8s", *arguments, kubeconfig=kubeconfig)

    return run


def ago(seconds):
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def told_by_an_agent(status, generation=0, *, pods=(), millis=(), seconds=5, **more):
    """Return the annotations that an agent writes."""
    keys = {
        "agent-status": status,
        "agent-mode": status.partition(":")[0],
        "agent-message": more.pop("message", ""),
        "config-generation": str(generation),
        "tiers-updated": ago(seconds),
        **{f"tier-{tier}-pods": str(n) for tier, n in zip(TIERS, pods, strict=False)},
        **{f"tier-{tier}-cpu-millis": str(n) for tier, n in zip(TIERS, millis, strict=False)},
        **more,
    }
    return {f"temper.codes/{key}": value for key, value in keys.items()}


class Fleet:
    """Nodes and agents' pods, made to order and removed in the end."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.nodes, self.pods = [], []

    def node(self, name, annotations=None, *, labels=None, info=None, is_ready=True, **spec):
        self.cluster.make(
            {
                "kind": "Node",
                "apiVersion": "v1",
                "metadata": {
                    "name": name,
                    "labels": labels or {},
                    "annotations": annotations or {},
                },
                "spec": spec,
            }
        )
        self.nodes.append(name)
        given = {
            "kernelVersion": "6.12.9",
            "osImage": "Test OS",
            "kubeletVersion": "v1.36.3",
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
            "containerRuntimeVersion": "containerd://2.2.0",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
            **(info or {}),
        }
        ready = {"type": "Ready", "status": "True" if is_ready else "False"}
        self.status("Node", name, {"nodeInfo": given, "conditions": [ready]})

    def agent(self, node, *, tag="1.0.0", restarts=0, waiting="", is_canary=False, is_ready=True):
        name = f"temper-agent-{'canary-' if is_canary else ''}{node}"
        labels = {"app.kubernetes.io/name": "temper", "app.kubernetes.io/component": "agent"}
        image = f"registry.temper.codes/temper:{tag}"
        self.cluster.make(
            {
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": {"name": name, "namespace": "temper", "labels": labels},
                "spec": {"nodeName": node, "containers": [{"name": "agent", "image": image}]},
            }
        )
        self.pods.append(name)
        state = {"waiting": {"reason": waiting}} if waiting else {"running": {}}
        container = {
            "name": "agent",
            "image": image,
            "imageID": "",
            "ready": is_ready,
            "restartCount": restarts,
            "state": state,
        }
        conditions = [{"type": "Ready", "status": "True" if is_ready and not waiting else "False"}]
        told = {"phase": "Running", "conditions": conditions, "containerStatuses": [container]}
        self.status("Pod", name, told, "temper")

    def status(self, kind, name, status, namespace=""):
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        self.cluster.patch({"kind": kind, "metadata": metadata}, {"status": status}, "/status")

    def remove(self):
        for name in self.pods:
            self.cluster.delete({"kind": "Pod", "metadata": {"name": name, "namespace": "temper"}})
        for name in self.nodes:
            self.cluster.delete({"kind": "Node", "metadata": {"name": name}})


@pytest.fixture
def fleet(cluster):
    fleet = Fleet(cluster)
    yield fleet
    fleet.remove()


@pytest.fixture
def kubeconfig_of(cluster, kubeconfig_to):
    """Write a kubeconfig of this cluster for some user."""

    def write(user, name="kubeconfig", **cluster_keys):
        where = {"server": cluster.url, "certificate-authority": str(cluster.ca), **cluster_keys}
        return kubeconfig_to(where.pop("server"), user, name, **where)

    return write


@pytest.fixture(scope="module")
def base(cluster):
    """A healthy installation on two healthy nodes."""
    objects, fleet = Objects(cluster), Fleet(cluster)
    for collection, document in installation_of("temper"):
        objects.install(collection, document)
    for name in ("one", "two"):
        fleet.node(name, told_by_an_agent("enforcing", 3))
        fleet.agent(name)
    objects.touched = set()
    yield objects
    fleet.remove()
    objects.remove()


@pytest.fixture
def installed(base):
    yield base
    base.put_back()
    unlabelled = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": None}}}
    base.patch("/api/v1/namespaces/temper", unlabelled)


@pytest.fixture
def doctor(cluster):
    """Run it in this process; returns findings as (check, severity, nodes), and all it said."""
    kubeconfig = str(cluster.directory / "kubeconfig")

    def run(*options):
        asked = ["--kubeconfig", kubeconfig, "-o", "json", "--no-kubelets", *options]
        done = CliRunner().invoke(command, asked, standalone_mode=False, catch_exceptions=False)
        told = json.loads(done.stdout)
        assert done.return_value == (0 if told["is_clean"] else 1)
        found = {
            (each["check"], each["severity"], tuple(each["nodes"])) for each in told["findings"]
        }
        return found, told

    return run
