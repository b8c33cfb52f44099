"""PodLists as ``kubectl get pods -A -o json`` prints them, made up from a seed."""

import random
import uuid
from typing import Any

Document = dict[str, Any]

NODE = "worker-3"
STARTED = "2026-03-02T08:15:04Z"
PRIORITIES = [
    ("", 0),
    ("", 0),
    ("", 0),
    ("batch-low", -50),
    ("batch-idle", -1000),
    ("web-high", 200_000),
    ("latency-critical", 1_500_000),
    ("system-node-critical", 2_000_001_000),
]
IMAGES = [
    "mysql:8.4",
    "nginx:1.29",
    "redis:8",
    "registry.example.com/team/api:2.14.1",
    "postgres:17",
]
CPU = ["100m", "250m", "0.5", "1", "1500m", "2", "4"]
MEMORY = ["64Mi", "128Mi", "1Gi", "2G", "512M"]


def make_podlist(count: int, seed: int = 0) -> Document:
    """Make *count* pods of one node; one in twelve is finished, terminating or a mirror pod."""
    chance = random.Random(seed)
    return {
        "apiVersion": "v1",
        "items": [make_pod(chance, number) for number in range(count)],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }


def make_pod(chance: random.Random, number: int) -> Document:
    """Make one running pod, with all that the API server adds to it."""
    name = f"app-{number % 40}-{chance.getrandbits(40):010x}-{chance.getrandbits(20):05x}"
    containers = [_container(chance, f"c{n}") for n in range(chance.choice([1, 1, 1, 2, 3]))]
    init = [_container(chance, "init-db")] if chance.random() < 0.2 else []
    if chance.random() < 0.15:
        init.append({**_container(chance, "proxy"), "restartPolicy": "Always"})
    priority_class, priority = chance.choice(PRIORITIES)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(chance, name, f"team-{number % 7}"),
        "spec": _spec(containers, init, priority_class, priority),
        "status": _status(chance, containers, init),
    }
    _make_special(pod, chance, number)
    return pod


def _make_special(pod: Document, chance: random.Random, number: int) -> None:
    kind = {3: "finished", 7: "terminating", 11: "mirror"}.get(number % 36)
    if kind == "finished":
        pod["status"]["phase"] = "Succeeded"
    elif kind == "terminating":
        pod["metadata"]["deletionTimestamp"] = STARTED
    elif kind == "mirror":
        value = f"{chance.getrandbits(128):032x}"
        pod["metadata"]["annotations"] |= {
            "kubernetes.io/config.hash": value,
            "kubernetes.io/config.mirror": value,
            "kubernetes.io/config.source": "file",
        }


def _container(chance: random.Random, name: str) -> Document:
    return {
        "env": [{"name": f"SETTING_{n}", "value": f"value {n}"} for n in range(4)],
        "image": chance.choice(IMAGES),
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": {
            "failureThreshold": 3,
            "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
            "periodSeconds": 10,
            "successThreshold": 1,
            "timeoutSeconds": 1,
        },
        "name": name,
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": _resources(chance),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                "name": "kube-api-access-x7k2p",
                "readOnly": True,
            }
        ],
    }


def _resources(chance: random.Random) -> Document:
    kind = chance.choice(["none", "requests", "requests", "both", "guaranteed"])
    size = {"cpu": chance.choice(CPU), "memory": chance.choice(MEMORY)}
    if kind == "none":
        return {}
    if kind == "requests":
        return {"requests": size}
    if kind == "guaranteed":
        return {"limits": size, "requests": dict(size)}
    return {"limits": {"cpu": "8", "memory": "4Gi"}, "requests": size}


def _metadata(chance: random.Random, name: str, namespace: str) -> Document:
    owner = {
        "apiVersion": "apps/v1",
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": "ReplicaSet",
        "name": name.rpartition("-")[0],
        "uid": _uid(chance),
    }
    return {
        "annotations": {"prometheus.io/scrape": "true"},
        "creationTimestamp": STARTED,
        "generateName": name[:-5],
        "labels": {"app": name.rsplit("-", 2)[0], "pod-template-hash": name.rsplit("-", 2)[1]},
        "managedFields": [_managed("kube-controller-manager"), _managed("kubelet")],
        "name": name,
        "namespace": namespace,
        "ownerReferences": [owner],
        "resourceVersion": str(chance.randrange(10**8)),
        "uid": _uid(chance),
    }


def _uid(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def _managed(manager: str) -> Document:
    fields: Document = {
        "f:containers": {
            'k:{"name":"c0"}': {
                f"f:{key}": {}
                for key in (
                    "image",
                    "imagePullPolicy",
                    "livenessProbe",
                    "name",
                    "ports",
                    "resources",
                )
            }
        },
        **{f"f:{key}": {} for key in ("dnsPolicy", "restartPolicy", "schedulerName", "volumes")},
    }
    return {
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": fields},
        "manager": manager,
        "operation": "Update",
        "time": STARTED,
    }


def _spec(
    containers: list[Document], init: list[Document], priority_class: str, priority: int
) -> Document:
    spec: Document = {
        "containers": containers,
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "nodeName": NODE,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": priority,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {"fsGroup": 2000, "runAsNonRoot": True},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {
                "effect": "NoExecute",
                "key": f"node.kubernetes.io/{problem}",
                "operator": "Exists",
                "tolerationSeconds": 300,
            }
            for problem in ("not-ready", "unreachable")
        ],
        "volumes": [
            {
                "name": "kube-api-access-x7k2p",
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt"}},
                    ],
                },
            }
        ],
    }
    if init:
        spec["initContainers"] = init
    if priority_class:
        spec["priorityClassName"] = priority_class
    return spec


def _status(chance: random.Random, containers: list[Document], init: list[Document]) -> Document:
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    status: Document = {
        "conditions": [
            {"lastProbeTime": None, "lastTransitionTime": STARTED, "status": "True", "type": kind}
            for kind in (*conditions, "PodScheduled")
        ],
        "containerStatuses": [_container_status(chance, each) for each in containers],
        "hostIP": "10.0.0.13",
        "hostIPs": [{"ip": "10.0.0.13"}],
        "phase": "Running",
        "podIP": "10.244.3.17",
        "podIPs": [{"ip": "10.244.3.17"}],
        "qosClass": _qos_class([*containers, *init]),
        "startTime": STARTED,
    }
    if init:
        status["initContainerStatuses"] = [_container_status(chance, each) for each in init]
    return status


def _container_status(chance: random.Random, container: Document) -> Document:
    return {
        "containerID": f"containerd://{chance.getrandbits(256):064x}",
        "image": container["image"],
        "imageID": f"docker.io/library/x@sha256:{chance.getrandbits(256):064x}",
        "lastState": {},
        "name": container["name"],
        "ready": True,
        "restartCount": 0,
        "started": True,
        "state": {"running": {"startedAt": STARTED}},
        "volumeMounts": [],
    }


def _qos_class(containers: list[Document]) -> str:
    resources = [container["resources"] for container in containers]
    if not any(resources):
        return "BestEffort"
    if all(each and each.get("limits") == each.get("requests") for each in resources):
        return "Guaranteed"
    return "Burstable"
