"""Series of made-up pods as cAdvisor, DCGM, both Keplers and Temper's agents export them."""

import json
import re

import httpx2

from tests.rightsizer.fleet_series import labelled

EVERY_S = 120


class Exported:
    """Samples of the last minutes up to *now*."""

    def __init__(self, now, samples=7):
        self.times = [now - EVERY_S * back for back in reversed(range(samples))]
        self.lines = []

    def counter(self, metric, per_s, **labels):
        name = labelled(metric, labels)
        self.lines += [
            f"{name} {1000 + per_s * (at - self.times[0]):.6f} {at}" for at in self.times
        ]

    def gauge(self, metric, value, **labels):
        name = labelled(metric, labels)
        self.lines += [f"{name} {value} {at}" for at in self.times]

    def usage(self, namespace, pod, cpus, held_bytes):
        """Add what cAdvisor has of a pod of one container, and of the pod as a whole."""
        for container in ("app", "", "POD"):
            labels = {"namespace": namespace, "pod": pod, "container": container}
            self.counter("container_cpu_usage_seconds_total", cpus, cpu="total", **labels)
            self.gauge("container_memory_working_set_bytes", held_bytes, **labels)

    def requested(self, namespace, pod, cpus, limit_bytes):
        """Add what kube-state-metrics has of a pod of one container."""
        labels = {"namespace": namespace, "pod": pod, "container": "app", "node": "n1"}
        for family, resource, unit, value in (
            ("requests", "cpu", "core", cpus),
            ("limits", "memory", "byte", limit_bytes),
        ):
            name = f"kube_pod_container_resource_{family}"
            self.gauge(name, value, resource=resource, unit=unit, uid=pod, **labels)

    def pressure(self, namespace, pod, *, io, memory):
        labels = {"namespace": namespace, "pod": pod, "container": "app"}
        self.counter("container_pressure_io_waiting_seconds_total", io, **labels)
        self.counter("container_pressure_memory_waiting_seconds_total", memory, **labels)

    def gpu(self, namespace, pod, percent, *, honoured=True):
        own = {"namespace": namespace, "pod": pod}
        taken = {f"exported_{name}": value for name, value in own.items()}
        exporter = {"namespace": "gpu-operator", "pod": "dcgm-1"}
        labels = own if honoured else {**exporter, **taken}
        self.gauge("DCGM_FI_DEV_GPU_UTIL", percent, gpu="0", **labels)

    def old_kepler(self, namespace, pod, *, label="container_namespace", **watts):
        for zone, value in watts.items():
            for mode, share in (("dynamic", 0.75), ("idle", 0.25)):
                labels = {"pod_name": pod, label: namespace, "container_name": "app", "mode": mode}
                name = f"kepler_container_{zone}_joules_total"
                self.counter(name, value * share, **labels)

    def new_kepler(self, namespace, pod, *, gpu=None, **watts):
        labels = {"pod_id": pod, "pod_name": pod, "pod_namespace": namespace}
        for zone, value in {**watts, "core": watts["package"] * 0.8}.items():
            for state, share in (("running", 1), ("terminated", 5)):
                own = {**labels, "state": state, "zone": zone}
                self.counter("kepler_pod_cpu_joules_total", value * share, **own)
        if gpu is not None:
            self.gauge("kepler_pod_gpu_watts", gpu, state="running", **labels)

    def temper(self, namespace, pod, *, waits, threads, busiest):
        labels = {"namespace": namespace, "pod": pod}
        self.counter("temper_pod_run_delay_seconds_total", waits, **labels)
        self.gauge("temper_pod_threads", threads, **labels)
        for thread, cpus in (("worker-*", busiest), ("main", busiest / 2), ("rest", 30)):
            name = "temper_pod_thread_cpu_seconds_total"
            self.counter(name, cpus, thread=thread, **labels)

    def counted(self, namespace, pod, **rates):
        for measure, rate in rates.items():
            name = f"temper_pod_{measure}_total"
            self.counter(name, rate, namespace=namespace, pod=pod)


def a_pod(name, node="n1", *, cpu="1", memory="1Gi", **metadata):
    """Return a Pod object of namespace ``shop`` that belongs to a StatefulSet of its name."""
    resources = {"requests": {"cpu": cpu}, "limits": {"memory": memory}}
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-0",
            "namespace": "shop",
            "ownerReferences": [{"kind": "StatefulSet", "name": name, "controller": True}],
            **metadata,
        },
        "spec": {"nodeName": node, "containers": [{"name": "app", "resources": resources}]},
        "status": {"phase": "Running"},
    }


def write_pods(folder, pods):
    path = folder / "pods.json"
    path.write_text(json.dumps({"kind": "PodList", "items": pods}))
    return path


def queries_of(address):
    """Return how many instant queries the server at *address* has answered so far."""
    page = httpx2.get(f"{address}/metrics").text
    found = re.findall(
        r'^prometheus_http_requests_total\{.*handler="/api/v1/query".*\} (\S+)', page, re.MULTILINE
    )
    return sum(map(float, found))
