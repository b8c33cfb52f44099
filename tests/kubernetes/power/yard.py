"""A power extender as a process, kube-schedulers that ask it, and many plain nodes."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import yaml

from tests.control_plane.cluster import PATCHES, ROOT, pod, unique
from tests.density.placement.yard import Yard
from tests.power.extender.serving import CLASS

RIGHTS = list(yaml.safe_load_all((ROOT / "plugins/power/extender-rbac.yaml").read_text()))
TWINS = "/apis/joulie.io/v1alpha1/nodetwins"
DOCUMENTED = (ROOT / "docs/power-extender.md").read_text()
READY = [{"type": "Ready", "status": "True"}]
SIZE = {"cpu": "64", "memory": "256Gi", "pods": "500"}


def documented_extender():
    """Return the power extender's part of the configuration as the documentation has it."""
    (found,) = re.findall(r"```yaml\n(.*?KubeSchedulerConfiguration.*?)```", DOCUMENTED, re.DOTALL)
    return yaml.safe_load(found)["extenders"][1]


def put_twin(cluster, node, node_class, **status):
    """Make or change the NodeTwin of *node*, told just now."""
    profile = "performance" if node_class == "performance" else "eco"
    twin = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": node},
        "spec": {"nodeName": node, "profile": profile},
    }
    cluster.client.post(TWINS, json=twin)
    told = {
        "schedulableClass": node_class,
        "predictedPowerHeadroomScore": 80,
        "predictedCoolingStressScore": 20,
        "predictedPsuStressScore": 10,
        "effectiveCapState": {"cpuPct": 100, "gpuPct": 100},
        "lastUpdated": datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **status,
    }
    cluster.call("PATCH", f"{TWINS}/{node}/status", {"status": told}, **PATCHES)


class PowerYard(Yard):
    """Nodes with twins, a power extender and schedulers for one module of tests."""

    rights = RIGHTS
    account_name = "temper-power-extender"
    command = ("power", "extender", "--score-scale", "10")

    def configured(self):
        """Return the extender that schedulers ask."""
        return documented_extender()

    def nodes(self, classes):
        """Make a node with a twin for each name and class. Return the full names by name."""
        names = {name: f"{self.label}-{name}" for name in classes}
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self._make, names.values(), classes.values()))
        return names

    def submit_many(self, count, **annotations):
        """Make pods that want a node. Return their names."""
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda _: self.submit_one(**annotations), range(count)))

    def submit_one(self, workload_class="performance", scheduler="temper-scheduler", **annotations):
        hints = {f"joulie.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
        name = unique("wanted")
        hints[CLASS] = workload_class
        wanted = pod(name, None, "shop", cpu="100m", annotations=hints)
        wanted["spec"] |= {
            "schedulerName": scheduler,
            "nodeSelector": {"yard": self.label},
        }
        self.submit_pod(wanted)
        return name

    def submit_pod(self, wanted):
        """Make a pod of the namespace ``shop``. Return it as the API server has it."""
        self._pods.append((wanted["metadata"]["name"], "shop"))
        return self.cluster.make(wanted)

    def pods(self):
        """Return the pods of the yard that are not being deleted."""
        found = self.cluster.call("GET", "/api/v1/namespaces/shop/pods")["items"]
        mine = {name for name, _ in self._pods}
        return [
            item
            for item in found
            if item["metadata"]["name"] in mine and "deletionTimestamp" not in item["metadata"]
        ]

    def placed(self):
        """Return the node of each pod of the yard that has one."""
        return {
            item["metadata"]["name"]: item["spec"]["nodeName"]
            for item in self.pods()
            if item["spec"].get("nodeName")
        }

    def _make(self, name, node_class):
        labels = {"yard": self.label}
        metadata = {"name": name, "labels": labels}
        node = self.cluster.make({"kind": "Node", "apiVersion": "v1", "metadata": metadata})
        self._nodes.append(name)
        status = {"capacity": SIZE, "allocatable": SIZE, "conditions": READY}
        self.cluster.patch(node, {"status": status}, "/status")
        if node_class is not None:
            put_twin(self.cluster, name, node_class)

    def clear(self):
        """Take away every node, pod and twin."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: self.cluster.client.delete(f"{TWINS}/{name}"), self._nodes))
            list(
                pool.map(lambda each: self.cluster.delete(pod(each[0], None, each[1])), self._pods)
            )
        self._pods = []
        super().clear()
