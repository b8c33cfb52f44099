"""Series of a made-up fleet under the names of cAdvisor, kube-state-metrics and our agents."""

import subprocess
import time
from contextlib import contextmanager

import httpx2

from tests.kubernetes.monitoring.live import free_port
from tests.patience import PATIENCE_S
from tests.prometheus import program, promtool

SCRAPE_S = 30
HOURS = 7
MIB = 1024 * 1024


def labelled(metric, labels):
    inside = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{inside}}}"


class Series:
    """Samples of series up to *now*, for a Prometheus."""

    def __init__(self, now):
        self.now = now
        self.times = range(now - HOURS * 3600, now + 1, SCRAPE_S)
        self.samples = {}

    def add(self, metric, labels, samples):
        self.samples.setdefault(labelled(metric, labels), {}).update(samples)

    def gauge(self, metric, value, times=None, **labels):
        self.add(metric, labels, dict.fromkeys(times or self.times, value))

    def counter(self, metric, per_s, **labels):
        begin = self.times[0]
        self.add(metric, labels, {at: f"{per_s * (at - begin):.6f}" for at in self.times})

    def lines(self):
        """Return the lines in OpenMetrics."""
        lines = (
            f"{name} {value} {at}"
            for name, samples in self.samples.items()
            for at, value in sorted(samples.items())
        )
        return (*lines, "# EOF")


class Container:
    """One container of a pod, with its series. *labels* are those that cAdvisor gives it."""

    def __init__(self, series, namespace, pod, container="app", *, names=("pod", "container")):
        self.series = series
        self.state = {"namespace": namespace, "pod": pod, "container": container}
        own = dict(zip(names, (pod, container), strict=True))
        self.labels = {"namespace": namespace, **own, "id": f"/kubepods/{pod}/{container}"}

    def uses(self, cpus, memory=100 * MIB):
        self.series.counter("container_cpu_usage_seconds_total", cpus, cpu="total", **self.labels)
        self.series.gauge("container_memory_working_set_bytes", memory, **self.labels)
        return self

    def pauses(self):
        """Add what cAdvisor has of the pod and of its pause process."""
        for name in ("", "POD"):
            rest = {**self.labels, "container": name, "id": f"{self.labels['id']}/{name}"}
            self.series.counter("container_cpu_usage_seconds_total", 30.0, cpu="total", **rest)
            self.series.gauge("container_memory_working_set_bytes", 10**12, **rest)
        return self

    def throttled(self, share):
        self.series.counter("container_cpu_cfs_periods_total", 10.0, **self.labels)
        self.series.counter(
            "container_cpu_cfs_throttled_periods_total", 10.0 * share, **self.labels
        )
        self.series.counter("container_cpu_cfs_throttled_seconds_total", share / 20, **self.labels)
        return self

    def grows(self, metric, labels):
        """Add a counter that goes from 0 to 1 in the middle of its time."""
        times = self.series.times
        middle = times[len(times) // 2]
        self.series.add(metric, labels, {at: int(at >= middle) for at in times})
        return self

    def hottest(self, cpus, **more):
        labels = {**self.state, **more}
        self.series.gauge("temper_container_hottest_thread_cpus", cpus, **labels)
        return self

    def sized(self, *, prefix="", **amounts):
        """Add what kube-state-metrics tells of requests and limits, and that the pod exists."""
        state = {f"{prefix}{name}": value for name, value in self.state.items()}
        self.series.gauge("kube_pod_container_info", 1, **state)
        for name, value in amounts.items():
            resource, _, kind = name.partition("_")
            unit = "core" if resource == "cpu" else "byte"
            metric = f"kube_pod_container_resource_{kind}s"
            self.series.gauge(metric, value, **state, resource=resource, unit=unit)
        return self


def owned(series, namespace, pod, kind, name):
    labels = {"namespace": namespace, "pod": pod, "owner_kind": kind, "owner_name": name}
    series.gauge("kube_pod_owner", 1, **labels)


def deployed(series, namespace, pod, deployment):
    replicaset = f"{deployment}-7c9f"
    owned(series, namespace, pod, "ReplicaSet", replicaset)
    labels = {"replicaset": replicaset, "owner_kind": "Deployment", "owner_name": deployment}
    series.gauge("kube_replicaset_owner", 1, namespace=namespace, **labels)


def make_blocks(folder, lines):
    """Write *lines* of OpenMetrics with times as the blocks of a Prometheus in *folder*."""
    source = folder / "series.txt"
    with source.open("w") as file:
        file.writelines(f"{line}\n" for line in lines)
    made = promtool("tsdb", "create-blocks-from", "openmetrics", source, folder / "tsdb")
    assert made.returncode == 0, made.stderr
    source.unlink()


@contextmanager
def serving(folder):
    """Run a Prometheus on the blocks in *folder*, and give its address."""
    port = free_port()
    config = folder / "prometheus.yaml"
    config.write_text("")
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder}/tsdb",
                "--storage.tsdb.retention.time=30d",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stderr=log,
            stdout=log,
        )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_until_ready(address, folder)
        yield address
    finally:
        server.kill()
        server.wait()


def _wait_until_ready(address, folder):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if httpx2.get(f"{address}/-/ready").status_code == 200:
                return
        except httpx2.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError((folder / "log").read_text())
