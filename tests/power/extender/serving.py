"""The extender behind a real socket, and the objects that it knows and is asked about."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

from temper_core import BoundedServer, Bounds
from temper_plugin_power.extender.application import PowerExtender
from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.starting import rules_of
from temper_plugin_power.settings.power import PowerSettings
from tests.power.made import affinity, naming, term

CLASS = "joulie.io/workload-class"
NODE_LABEL = "joulie.io/power-profile"


@contextmanager
def serving(cluster=None, settings=None, context=None, access=None, **bounds):
    """Serve what is known of *cluster*. Yield the port."""
    extender = PowerExtender(rules_of(settings or PowerSettings()), cluster or Cluster(), **bounds)
    listener = socket.create_server(("127.0.0.1", 0))
    application = extender.application(access)
    server = BoundedServer(application, Bounds(), context=context, has_lifespan=True)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve([listener]),))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        loop.call_soon_threadsafe(server.tell_to_stop)
        thread.join(30)
        loop.close()


def a_twin(name, node_class="performance", headroom=80, cpu_pct=100, age_s=0.0, **status):
    """Return a NodeTwin of that age."""
    told = datetime.fromtimestamp(time.time() - age_s, UTC)
    return {
        "metadata": {"name": f"twin-of-{name}"},
        "spec": {"nodeName": name},
        "status": {
            "schedulableClass": node_class,
            "predictedPowerHeadroomScore": headroom,
            "predictedCoolingStressScore": 20,
            "predictedPsuStressScore": 10.0,
            "effectiveCapState": {"cpuPct": cpu_pct, "gpuPct": 100},
            "lastUpdated": told.isoformat(),
            **status,
        },
    }


def a_profile(name="web", namespace="shop", workload_class="performance", **status):
    """Return the WorkloadProfile of a Deployment."""
    status = {"criticality": {"class": workload_class}, "confidence": 0.7, "hints": [], **status}
    return {
        "metadata": {"name": f"deployment-{name}", "namespace": namespace},
        "spec": {"workloadRef": {"kind": "Deployment", "name": name}},
        "status": status,
    }


def a_pod(workload_class=None, namespace="shop", owner="web", **annotations):
    """Return a pod of a ReplicaSet of the Deployment *owner*, which is new to the cluster."""
    hints = {f"joulie.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    if workload_class is not None:
        hints[CLASS] = workload_class
    reference = {"kind": "ReplicaSet", "name": f"{owner}-77f", "controller": True}
    metadata = {
        "name": f"{owner}-77f-1",
        "namespace": namespace,
        "annotations": hints,
        "labels": {"pod-template-hash": "77f"},
        "ownerReferences": [reference],
    }
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "a", "resources": resources}]}}


def with_spec(pod, **fields):
    """Return *pod* with more fields of its spec."""
    return {**pod, "spec": {**pod["spec"], **fields}}


def of_daemon_set(pod):
    """Return *pod* with a reference to a DaemonSet, as anybody can write it."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "made-up", "controller": True}
    return {**pod, "metadata": {**pod["metadata"], "ownerReferences": [owner]}}


EXEMPT = [
    with_spec(of_daemon_set(a_pod("performance")), **naming("eco")),
    with_spec(a_pod("performance"), **naming("eco")),
    with_spec(a_pod(), priority=2_000_001_000, priorityClassName="system-node-critical"),
    with_spec(a_pod("performance"), priority=2_000_000_000),
]
"""Performance pods that no node rejects."""
CLAIMING = [
    of_daemon_set(a_pod("performance")),
    with_spec(a_pod("performance"), **affinity([term("eco"), term("performance")])),
    with_spec(a_pod("performance"), priority=1_000_000_000),
]
"""Performance pods that only seem to be exempt."""


def asked(*names, pod=None):
    """Return ExtenderArgs as kube-scheduler with ``nodeCacheCapable`` writes them."""
    return {"Pod": pod or a_pod("performance"), "Nodes": None, "NodeNames": list(names)}


def asked_whole(labels_by_name, pod=None):
    """Return ExtenderArgs with whole nodes."""
    items = [
        {"metadata": {"name": name, "labels": labels}, "status": {"images": []}}
        for name, labels in labels_by_name.items()
    ]
    return {"Pod": pod or a_pod("performance"), "Nodes": {"metadata": {}, "items": items}}


def preempting(victims_by_node, pod=None):
    """Return ExtenderPreemptionArgs as kube-scheduler with ``nodeCacheCapable`` writes them."""
    victims = {
        node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
        for node, uids in victims_by_node.items()
    }
    return {
        "Pod": pod or a_pod("performance"),
        "NodeNameToVictims": None,
        "NodeNameToMetaVictims": victims,
    }


def preempting_whole(victims_by_node, pod=None):
    """Return ExtenderPreemptionArgs with whole pods."""
    victims = {
        node: {"Pods": [_a_victim(uid) for uid in uids], "NumPDBViolations": 0}
        for node, uids in victims_by_node.items()
    }
    return {
        "Pod": pod or a_pod("performance"),
        "NodeNameToVictims": victims,
        "NodeNameToMetaVictims": None,
    }


def _a_victim(uid):
    pod = a_pod("standard", owner="batch")
    return {**pod, "metadata": {**pod["metadata"], "uid": uid}}
