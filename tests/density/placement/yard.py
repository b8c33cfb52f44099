"""A real control plane with a real kube-scheduler, an extender as a process, and plain nodes."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import yaml

from temper_core import Tier
from tests.control_plane.cluster import KUBE, ROOT, pod, unique, wait_until
from tests.density.placement.made import PRIORITIES, told

TEMPER = str(Path(sys.executable).with_name("temper"))
RIGHTS = list(yaml.safe_load_all((ROOT / "plugins/density/placement-rbac.yaml").read_text()))
DOCUMENTED = (ROOT / "docs/placement.md").read_text()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


def documented_configuration():
    """The scheduler's configuration as docs/placement.md has it."""
    (found,) = re.findall(r"```yaml\n(.*?KubeSchedulerConfiguration.*?)```", DOCUMENTED, re.DOTALL)
    return yaml.safe_load(found)


def kubeconfig(cluster, path, token):
    """Write a kubeconfig with that token."""
    document = yaml.safe_load((cluster.directory / "kubeconfig").read_text())
    document["users"][0]["user"] = {"token": token}
    path.write_text(yaml.safe_dump(document))
    return path


class Process:
    """A child that is ended with the test, and what it logged."""

    def __init__(self, arguments, log):
        self.log = log
        with log.open("ab") as out:
            self._child = subprocess.Popen(arguments, stdout=out, stderr=out)

    def stop(self):
        """End it; return its exit code."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
        try:
            return self._child.wait(15)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()

    def pause(self):
        os.kill(self._child.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self._child.pid, signal.SIGCONT)


class Yard:
    """Nodes, pods, an extender and schedulers for one module of tests."""

    rights = RIGHTS
    account_name = "temper-placement"
    command = ("placement", "serve")

    def __init__(self, cluster, directory):
        self.cluster, self.directory = cluster, directory
        self.label = unique("yard")
        self.url = f"http://127.0.0.1:{free_port()}"
        self._processes, self._nodes, self._pods = [], [], []
        for document in self.rights:
            cluster.make(document)
        for name, value in PRIORITIES.values():
            cluster.make({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
        self.account = kubeconfig(cluster, directory / "account", cluster.token(self.account_name))
        self.extender = None

    def close(self):
        self.clear()
        for process in reversed(self._processes):
            process.stop()

    def clear(self):
        """Take away every node and pod."""
        for name, namespace in self._pods:
            self.cluster.delete(pod(name, None, namespace))
        for name in self._nodes:
            self.cluster.without_node(name)
        self._nodes, self._pods = [], []

    def start_extender(self):
        arguments = [TEMPER, *self.command, "--listen", self.url.removeprefix("http://")]
        arguments += ["--kubeconfig", str(self.account)]
        self.extender = self._start(arguments, "extender.log")
        wait_until(lambda: self._says("/readyz"), "the extender", 60)

    def configured(self):
        """Return the extender that schedulers ask."""
        (extender,) = documented_configuration()["extenders"]
        return extender

    def start_scheduler(self, name, **extender):
        """Start a scheduler as the docs have it, but for *extender*'s changes."""
        document = documented_configuration()
        document["profiles"] = [{"schedulerName": name}]
        document["extenders"] = [{**self.configured(), "urlPrefix": self.url, **extender}]
        document["clientConnection"] = {"kubeconfig": str(self._scheduler_account())}
        path = self.directory / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document))
        binary = subprocess.run(
            [str(KUBE / "build"), "kube-scheduler"], check=True, capture_output=True, text=True
        ).stdout.strip()
        address = ["--bind-address", "127.0.0.1", "--secure-port", str(free_port())]
        arguments = [f"{binary}/kube-scheduler", "--config", str(path), *address]
        return self._start(arguments, f"{name}.log")

    def node(self, name, cpus="16", **annotations):
        """Make a node that is ready; it has what an agent on 8 cores tells, with those changes."""
        name = f"{self.label}-{name}"
        labels = {"yard": self.label}
        node = self.cluster.make(
            {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}
        )
        self._nodes.append(name)
        size = {"cpu": cpus, "memory": "64Gi", "pods": "500"}
        conditions = [{"type": "Ready", "status": "True"}]
        status = {"capacity": size, "allocatable": size, "conditions": conditions}
        self.cluster.patch(node, {"status": status}, "/status")
        if annotations.get("agent_mode") != "":
            self.cluster.annotate(name, **told(time.time(), **annotations))
        wait_until(lambda: name in self.known(), "the node")
        return name

    def bind(self, node, cpu, tier=Tier.NORMAL):
        """Put a pod on a node without asking a scheduler."""
        name = unique("bound")
        self.cluster.make(pod(name, node, "shop", cpu=cpu, priority_class=PRIORITIES[tier][0]))
        self._pods.append((name, "shop"))
        wait_until(lambda: self.explained(f"shop/{name}"), "the bound pod")

    def submit(self, tier, cpu, scheduler="temper-scheduler"):
        """Make a pod that wants a node; return its name."""
        name = unique(str(tier))
        wanted = pod(name, None, "shop", cpu=cpu, priority_class=PRIORITIES[tier][0])
        wanted["spec"] |= {"schedulerName": scheduler, "nodeSelector": {"yard": self.label}}
        self.cluster.make(wanted)
        self._pods.append((name, "shop"))
        return name

    def place(self, tier, cpu, scheduler="temper-scheduler"):
        """Make a pod, and return the node that it is given."""
        return self.where(self.submit(tier, cpu, scheduler))

    def where(self, name):
        def bound():
            return self.cluster.get("Pod", name, "shop")["spec"].get("nodeName")

        return wait_until(bound, f"a node for {name}", 40)

    def explained(self, pod):
        """Return what the extender says of a pod; None where it knows none."""
        answer = httpx2.get(f"{self.url}/debug/score", params={"pod": pod}, trust_env=False)
        return answer.json() if answer.is_success else None

    def known(self):
        """Name the nodes that the extender knows."""
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}}
        body["spec"] = {"containers": [{"name": "app", "image": "registry.example/app:1"}]}
        answer = httpx2.post(f"{self.url}/debug/score", json=body, trust_env=False)
        return {node["node"] for node in answer.json()["nodes"]}

    def _scheduler_account(self):
        token = next(
            line.split(",")[0]
            for line in (self.cluster.directory / "tokens.csv").read_text().splitlines()
            if "system:kube-scheduler" in line
        )
        return kubeconfig(self.cluster, self.directory / "scheduler", token)

    def _says(self, path):
        try:
            return httpx2.get(f"{self.url}{path}", trust_env=False).is_success
        except httpx2.TransportError:
            return False

    def _start(self, arguments, log):
        process = Process(arguments, self.directory / log)
        self._processes.append(process)
        return process
