"""The power extender's time for ``/filter`` and ``/prioritize`` of one pod, about 5,000 nodes.

Requests come one at a time over one connection, as kube-scheduler's do, and every pod is another.
Between two pods a NodeTwin changes. The floor is ``json.loads`` of the requests and ``json.dumps``
of the answers. The naive way reads the objects of the cluster anew for each request.
"""

import http.client
import json
import multiprocessing
import random
import socket
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from typing import Any

from temper_core import Pod
from temper_plugin_power.extender.application import PowerExtender
from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.reading import hardware_of_object, twin_of_object
from temper_plugin_power.extender.starting import rules_of
from temper_plugin_power.placing.rejecting import rejection
from temper_plugin_power.placing.scoring import performance_pressure, score
from temper_plugin_power.placing.subjects import Choices
from temper_plugin_power.placing.views import cluster_view
from temper_plugin_power.settings.power import PowerSettings
from temper_serving.running import serve

NODES = 5000
PODS = 64
TIMES = 1000
MEMORY_TIMES = 10_000
MEMORY_LOOKS = 4
WHOLE_TIMES = 10
NAIVE_TIMES = 20
NODE_BYTES = 10_000
"""Approximate size of a Node object, mostly names of images."""
NAMES = [
    f"ip-10-{n >> 16}-{n >> 8 & 255}-{n & 255}.eu-central-1.compute.internal" for n in range(NODES)
]
CHANCE = random.Random(18)  # noqa: S311 - no secret


def twin(name: str) -> dict[str, Any]:
    """Return a fresh NodeTwin of a node of some class with some caps."""
    node_class = CHANCE.choice(["performance", "performance", "eco", "draining"])
    status = {
        "schedulableClass": node_class,
        "predictedPowerHeadroomScore": CHANCE.uniform(0, 100),
        "predictedCoolingStressScore": CHANCE.uniform(0, 100),
        "predictedPsuStressScore": CHANCE.uniform(0, 100),
        "effectiveCapState": {"cpuPct": CHANCE.choice([60, 80, 100]), "gpuPct": 100},
        "lastUpdated": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {"kind": "NodeTwin", "metadata": {"name": name}, "status": status}


def hardware(number: int) -> dict[str, Any]:
    """Return the NodeHardware of a node, of one of 20 kinds."""
    cores, gpus = 32 * (1 + number % 5), 8 * (number % 4 == 0)
    cpu = {"sockets": 2, "totalCores": cores, "capRange": {"maxWattsPerSocket": 300 + number % 5}}
    gpu = {"present": gpus > 0, "count": gpus, "capRangePerGpu": {"maxWatts": 700}}
    metadata = {"name": NAMES[number]}
    return {"kind": "NodeHardware", "metadata": metadata, "status": {"cpu": cpu, "gpu": gpu}}


def pod(number: int) -> dict[str, Any]:
    """Return a pod object. All differ in size, half are of class performance."""
    annotations = {
        "joulie.io/workload-class": ("standard", "performance")[number % 2],
        "joulie.io/cpu-sensitivity": CHANCE.choice(["high", "medium", "low"]),
    }
    metadata = {"name": f"web-{number}", "namespace": "shop", "annotations": annotations}
    resources = {"requests": {"cpu": f"{500 + number}m", "memory": f"{1000 + number}Mi"}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "a", "resources": resources}]}}


OBJECTS = [*map(twin, NAMES), *map(hardware, range(NODES))]
QUESTIONS = [
    json.dumps({"Pod": pod(number), "Nodes": None, "NodeNames": NAMES}).encode()
    for number in range(PODS)
]


def run_server(listener: socket.socket) -> None:
    """Serve a full cluster, in which one twin changes before each question for scores."""
    cluster = Cluster()
    for each in OBJECTS[:NODES]:
        cluster.put_twin(*twin_of_object(each))
    for each in OBJECTS[NODES:]:
        cluster.put_hardware(*hardware_of_object(each))
    application = PowerExtender(rules_of(PowerSettings()), cluster).application()
    names = cycle(NAMES)

    async def change_and_answer(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI's
        if scope.get("path") == "/prioritize":
            cluster.put_twin(*twin_of_object(twin(next(names))))
        await application(scope, receive, send)

    serve(change_and_answer, listener, named="power_extender")  # type: ignore[arg-type]


class Scheduler:
    """One persistent connection to the server, like a scheduler's."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask(self, body: bytes) -> tuple[bytes, bytes]:
        """Return the answers to /filter and to /prioritize."""
        return self._post("/filter", body), self._post("/prioritize", body)

    def _post(self, path: str, body: bytes) -> bytes:
        self._connection.request("POST", path, body)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(text[:200])
        return text


def timed(times: int, call: Callable[[bytes], object], bodies: Sequence[bytes]) -> dict[str, float]:
    """Return the median and the 99th percentile of the milliseconds of a call, by all *bodies*."""
    walls = []
    for number in range(times):
        body = bodies[number % len(bodies)]
        began = time.perf_counter()
        call(body)
        walls.append((time.perf_counter() - began) * 1e3)
    p99 = sorted(walls)[max(0, round(len(walls) * 0.99) - 1)]
    return {"median_ms": round(statistics.median(walls), 2), "p99_ms": round(p99, 2)}


def floor(answers: dict[bytes, tuple[object, object]]) -> Callable[[bytes], None]:
    """Return a function that parses two requests with one body, and writes its two answers."""

    def parse_and_write(body: bytes) -> None:
        for answer in answers[body]:
            json.loads(body)
            json.dumps(answer)

    return parse_and_write


def naive(body: bytes) -> None:
    """Answer both requests without caches."""
    for is_filter in (True, False):
        question = json.loads(body)
        view = cluster_view(json.loads(CLUSTER_TEXT), datetime.now(UTC))
        metadata = question["Pod"]["metadata"]
        asked = Pod(
            "", metadata["namespace"], metadata["name"], annotations=metadata["annotations"]
        )
        wanted = view.pod_view(asked, question["Pod"]["spec"])
        if is_filter:
            json.dumps([name for name in NAMES if rejection(wanted, view.nodes[name]) is None])
            continue
        pressure = performance_pressure(view.nodes.values())
        scores = {name: score(wanted, view.nodes[name], pressure, Choices()) for name in NAMES}
        json.dumps([{"host": name, "score": each.points} for name, each in scores.items()])


CLUSTER_TEXT = json.dumps(OBJECTS)


def whole_nodes() -> bytes:
    """Return a question with whole Node objects, as without ``nodeCacheCapable``."""
    labels = {f"example.com/label-{number}": "value" for number in range(20)}
    items = [
        {"metadata": {"name": name, "labels": labels}, "status": {"images": ["x" * NODE_BYTES]}}
        for name in NAMES
    ]
    return json.dumps({"Pod": pod(1), "Nodes": {"items": items}, "NodeNames": None}).encode()


def resident_kib(pid: int) -> int:
    """Return the memory of a process that is not shared with files."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1])
    return 0


def measure() -> dict[str, Any]:
    """Return milliseconds, ratios within this run, and the server's memory over many requests."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = multiprocessing.get_context("fork").Process(target=run_server, args=(listener,))
    server.start()
    try:
        return _figures(Scheduler(listener.getsockname()[1]), server.pid or 0)
    finally:
        server.terminate()
        server.join()


def _figures(scheduler: Scheduler, pid: int) -> dict[str, Any]:
    answers = {body: tuple(map(json.loads, scheduler.ask(body))) for body in QUESTIONS}
    timed(100, scheduler.ask, QUESTIONS)
    by_name = timed(TIMES, scheduler.ask, QUESTIONS)
    least = timed(TIMES, floor(answers), QUESTIONS)
    whole = whole_nodes()
    whole_answers = {whole: tuple(map(json.loads, scheduler.ask(whole)))}
    by_object = timed(WHOLE_TIMES, scheduler.ask, [whole])
    least_by_object = timed(WHOLE_TIMES, floor(whole_answers), [whole])
    without_caches = timed(NAIVE_TIMES, naive, QUESTIONS)
    memory = [resident_kib(pid)]
    for _ in range(MEMORY_LOOKS):
        timed(MEMORY_TIMES // MEMORY_LOOKS // 2, scheduler.ask, QUESTIONS)
        memory.append(resident_kib(pid))
    return {
        "nodes": NODES,
        "question_bytes": len(QUESTIONS[0]),
        "by_name": by_name,
        "floor": least,
        "p99_to_floor": round(by_name["p99_ms"] / least["p99_ms"], 2),
        "median_to_floor": round(by_name["median_ms"] / least["median_ms"], 2),
        "whole_nodes_bytes": len(whole),
        "by_whole_nodes": by_object,
        "floor_of_whole_nodes": least_by_object,
        "whole_nodes_to_floor": round(by_object["median_ms"] / least_by_object["median_ms"], 2),
        "naive": without_caches,
        "naive_to_by_name": round(without_caches["median_ms"] / by_name["median_ms"], 1),
        "requests_for_memory": MEMORY_TIMES,
        "memory_kib": memory,
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1), file=sys.stdout)
