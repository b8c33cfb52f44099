"""The extender's rate of answers to a scheduler about 1,000 nodes, and their cost.

Requests come one at a time over one connection, as kube-scheduler's do. CPU time is the server's
own. ``/healthz`` is the cost of HTTP in the same run, and ``json.loads`` that of parsing.
"""

import http.client
import json
import multiprocessing
import runpy
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from timing import median_ms

from temper_core import Tier, load_settings
from temper_plugin_density.placement.app import Extender
from temper_plugin_density.placement.asking import BoundPod, PodDemand, PodReader
from temper_plugin_density.placement.facts import read_node
from temper_plugin_density.placement.ledger import Ledger
from temper_serving.running import serve

NODES = 1000
PODS_PER_NODE = 30
QUESTIONS = 300
WHOLE_NODE_QUESTIONS = 10
NODE_BYTES = 20_000
"""Approximate size of a Node object, mostly names of images."""
NAMES = [f"ip-10-0-{n // 256}-{n % 256}.eu-central-1.compute.internal" for n in range(NODES)]


def node(name: str) -> dict[str, Any]:
    """Return the Node object of a node on which an agent enforces."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    values = {"agent-mode": "enforcing", "tiers-updated": now, "fenced-cores": "2"}
    values |= {"fence-budget-cores": "7", "threads-per-core": "2"}
    annotations = {f"temper.codes/{key}": value for key, value in values.items()}
    images = [{"names": ["x" * NODE_BYTES]}]
    status = {"allocatable": {"cpu": "15890m"}, "images": images}
    return {"metadata": {"name": name, "annotations": annotations}, "status": status}


def pod(millis: int) -> dict[str, Any]:
    """Return a critical pod object of the API server."""
    podlists = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "podlists.py"))
    (item,) = podlists["make_podlist"](1)["items"]
    item["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    item["metadata"].pop("deletionTimestamp", None)
    item["spec"] |= {"priority": 1_000_000, "priorityClassName": "temper-critical"}
    item["spec"].pop("nodeName", None)
    item["spec"]["initContainers"] = []
    for container in item["spec"]["containers"]:
        container["resources"] = {"requests": {"cpu": f"{millis}m"}}
    return dict(item)


def bound(number: int) -> BoundPod:
    """Return a bound pod."""
    key, name = f"team/app-{number}", NAMES[number % NODES]
    return BoundPod(f"uid-{number}", name, PodDemand(key, Tier.CRITICAL, 100))


def run_server(listener: socket.socket) -> None:
    """Serve a full cluster, in which one more pod is bound before each request."""
    ledger = Ledger()
    ledger.replace_nodes(filter(None, (read_node(node(name)) for name in NAMES)))
    ledger.replace_pods(bound(number) for number in range(NODES * PODS_PER_NODE))
    application = Extender(PodReader(load_settings(None).priority_mapping), ledger).application()
    numbers = count(NODES * PODS_PER_NODE)

    async def bind_and_answer(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI's
        if scope.get("path") == "/prioritize":
            ledger.put_pod(bound(next(numbers)))
        await application(scope, receive, send)

    serve(bind_and_answer, listener, named="placement")  # type: ignore[arg-type]


class Asker:
    """One persistent connection to the server, like a scheduler's."""

    def __init__(self, port: int, pid: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._schedstat = Path(f"/proc/{pid}/schedstat")

    def spend(self, times: int, ask: Callable[[], tuple[str, str, bytes]]) -> dict[str, float]:
        """Send so many requests. Return CPU and wall milliseconds of one."""
        walls, before = [], self._cpu_ns()
        for _ in range(times):
            method, path, body = ask()
            began = time.perf_counter()
            self._connection.request(method, path, body)
            answer = self._connection.getresponse()
            text = answer.read()
            walls.append((time.perf_counter() - began) * 1e3)
            if answer.status != http.client.OK:
                raise RuntimeError(text[:200])
        cpu = (self._cpu_ns() - before) / times / 1e6
        return {"cpu_ms": round(cpu, 3), "wall_ms": round(statistics.median(walls), 3)}

    def _cpu_ns(self) -> int:
        return int(self._schedstat.read_text().split()[0])


def question(millis: int) -> bytes:
    """Return ExtenderArgs as a scheduler with ``nodeCacheCapable`` sends them."""
    return json.dumps({"Pod": pod(millis), "Nodes": None, "NodeNames": NAMES}).encode()


def whole_nodes() -> bytes:
    """Return ExtenderArgs as a scheduler without it sends them."""
    nodes = {"metadata": {}, "items": [node(name) for name in NAMES]}
    return json.dumps({"Pod": pod(1000), "Nodes": nodes, "NodeNames": None}).encode()


def measure() -> dict[str, Any]:
    """Return milliseconds and requests a second, and ratios within this run."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = multiprocessing.get_context("fork").Process(target=run_server, args=(listener,))
    server.start()
    try:
        asker = Asker(listener.getsockname()[1], server.pid or 0)
        asker.spend(20, lambda: ("GET", "/healthz", b""))
        return _figures(asker)
    finally:
        server.terminate()
        server.join()


def _figures(asker: Asker) -> dict[str, Any]:
    same, whole = question(1000), whole_nodes()
    others: Iterator[bytes] = iter([question(1000 + size) for size in range(1, QUESTIONS + 1)])
    alike = asker.spend(QUESTIONS, lambda: ("POST", "/prioritize", same))
    differing = asker.spend(QUESTIONS, lambda: ("POST", "/prioritize", next(others)))
    by_object = asker.spend(WHOLE_NODE_QUESTIONS, lambda: ("POST", "/prioritize", whole))
    http_alone = asker.spend(QUESTIONS, lambda: ("GET", "/healthz", b""))
    return {
        "nodes": NODES,
        "pods": NODES * PODS_PER_NODE,
        "question_bytes": len(same),
        "json_loads_ms": median_ms(lambda: json.loads(same), QUESTIONS),
        "healthz": http_alone,
        "pods_alike": alike,
        "every_pod_of_another_size": differing,
        "whole_nodes": by_object,
        "whole_nodes_bytes": len(whole),
        "per_second_of_cpu": round(1e3 / alike["cpu_ms"]),
        "alike_to_healthz": round(alike["cpu_ms"] / http_alone["cpu_ms"], 1),
        "differing_to_alike": round(differing["cpu_ms"] / alike["cpu_ms"], 1),
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1), file=sys.stdout)
