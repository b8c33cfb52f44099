"""The pods that the tests start on a real node, and the profile that one of them asks for."""

from attrs import field, frozen

BUSYBOX = "registry.local/busybox:1"
PROFILE_FILE = "e2e-shop.toml"
PROFILE = """
schema_version = 1
id = "e2e-shop"
description = "Writers before their neighbours, sweepers out of the way"

[fingerprint]
processes = ["e2e-shop"]

[[thread_groups]]
name = "writers"
match = [{ comm_prefix = "shop-write" }]
treatment = "latency"

[[thread_groups]]
name = "sweepers"
match = [{ comm_prefix = "shop-sweep" }]
treatment = "yield"
"""
# Wakes up twice a second without ever making a process: what follows a thread must find it again.
CALM = "mkfifo /tmp/never && exec 3<>/tmp/never && while :; do read -t 0.5 -u 3 x; done"
# Three threads that give themselves names, as a server's pools do.
SHOP = """
import threading, time
def work(name):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as comm:
        comm.write(name)
    while True:
        time.sleep(0.3)
for name in ("shop-write-0", "shop-write-1", "shop-sweep-0"):
    threading.Thread(target=work, args=(name,), daemon=True).start()
work("shop-main")
"""


@frozen
class Workload:
    """A pod, and the layer of its threads: by what their names begin with, else ``layer``."""

    name: str
    layer: str
    priority_class: str | None = None
    cpu: str | None = None
    is_guaranteed: bool = False
    image: str = BUSYBOX
    command: tuple[str, ...] = ("sh", "-c", CALM)
    annotations: dict[str, str] = field(factory=dict)
    by_thread: dict[str, str] = field(factory=dict)
    host_network: bool = False

    def document(self):
        """Return the pod as it is created; the scheduler finds its node."""
        container = {
            "name": "app",
            "image": self.image,
            "imagePullPolicy": "Never",
            "command": list(self.command),
        }
        if self.cpu:
            container["resources"] = {"requests": {"cpu": self.cpu, "memory": "32Mi"}}
            if self.is_guaranteed:
                container["resources"]["limits"] = container["resources"]["requests"]
        spec = {
            "terminationGracePeriodSeconds": 0,
            "hostNetwork": self.host_network,
            "containers": [container],
        }
        if self.priority_class:
            spec["priorityClassName"] = self.priority_class
        metadata = {"name": self.name, "namespace": "default", "annotations": self.annotations}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def layer_of(self, comm):
        """Return the layer of a thread of that name."""
        fitting = [layer for prefix, layer in self.by_thread.items() if comm.startswith(prefix)]
        return fitting[0] if fitting else self.layer


def comers(count):
    """Return so many pods that sleep, of four classes; networks of their own would take time."""
    classes = ["temper-low", "temper-background", None, "temper-high"]
    asleep = {"command": ("sleep", "10000"), "host_network": True}
    return [Workload(f"comer-{n}", "", classes[n % 4], "10m", **asleep) for n in range(count)]


def workloads(image):
    """Return a pod of each class, and one of *image* whose Python threads the profile is about."""
    return (
        Workload("critical", "critical", "temper-critical", "2", is_guaranteed=True),
        Workload("high", "high", "temper-high", "500m"),
        Workload("normal", "normal", None, "100m"),
        Workload("low", "open", "temper-low", "100m"),
        Workload("background", "open", "temper-background", "100m"),
        Workload("best-effort", "open"),
        Workload(
            "shop",
            "high",
            "temper-high",
            "500m",
            image=image,
            command=("/opt/temper/bin/python", "-c", SHOP),
            annotations={"temper.codes/workload-profile": "e2e-shop"},
            by_thread={"shop-write": "high", "shop-sweep": "open"},
        ),
    )
