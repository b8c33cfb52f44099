"""Publishes the hardware of nodes, by their labels, as NodeHardware objects."""

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import structlog
from attrs import frozen

from temper_core import MachineError
from temper_kube.api_server import ApiServer
from temper_kube.failures import ConflictError, NotFoundError
from temper_kube.list_pages import Json
from temper_plugin_power.controller.in_time import in_time
from temper_plugin_power.controller.managed import MANAGED_BY, MANAGER
from temper_plugin_power.controller.merge_changes import merge_change
from temper_plugin_power.controller.nodes import KnownNode
from temper_plugin_power.controller.owners import reference_to
from temper_plugin_power.controller.pods import Owner
from temper_plugin_power.controller.twins import (
    HARDWARES,
    MHZ_PER_GHZ,
    Record,
    cpu_names,
    gpu_names,
    hardware_of,
)
from temper_plugin_power.operating.catalogue import cpu_key, cpu_model, gpu_key
from temper_plugin_power.operating.twin import Hardware
from temper_plugin_power.resources.definitions import GROUP, VERSION

KIND = "NodeHardware"
UPDATED = "updatedAt"
BY_LABELS = "by the labels and the size of the node; no device was read"
MOST_WRITES = 200
"""In one cycle. The next one writes the others."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def hardware_status(node: KnownNode, products: Mapping[str, float]) -> Mapping[str, Any]:
    """Return the status of a NodeHardware object by the labels and the size of *node*.

    Empty unless the labels name a model. A node without a known model gets no object.
    *products* are the greatest caps of GPUs in watts by product.
    """
    cpus, gpus = cpu_names(node, None), gpu_names(node, None)
    if not (cpus or gpus):
        return {}
    found = hardware_of(node, None, products)
    keys = {"cpu": cpu_key(cpus), "gpu": gpu_key(gpus)}
    boost = cpu_model(cpus)
    return {
        "cpu": {
            **_named(cpus, keys["cpu"]),
            "totalCores": found.cores,
            **({"sockets": found.sockets} if found.sockets else {}),
            **_cpu_range(found),
            **({"landmarks": {"maxBoostMHz": boost.boost_ghz * MHZ_PER_GHZ}} if boost else {}),
        },
        "gpu": {
            "present": found.has_gpu,
            "count": found.gpus,
            **_named(gpus, keys["gpu"]),
            **_gpu_range(found),
        },
        "inventoryResolution": {
            "hardwareCatalogKey": keys,
            "exactness": {part: "exact" if key else "generic" for part, key in keys.items()},
        },
        "quality": {"overall": "heuristic", "warnings": [BY_LABELS]},
    }


@frozen
class HardwareWriter:
    """Writes the objects that differ. *wrote* gets each object as the server returns it.

    An object of another author is left as it is.
    """

    server: ApiServer
    now: Callable[[], datetime]
    wrote: Callable[[Json], object]
    products: Mapping[str, float]
    clock: Callable[[], float] = time.monotonic

    def write(self, nodes: Iterable[KnownNode], records: Mapping[str, Record]) -> None:
        """Write the objects of *nodes* that differ. One that fails stops no other."""
        news = [each for each in nodes if self._change(each, records.get(each.name))]
        for node in in_time(news[:MOST_WRITES], self.clock):
            try:
                self._write(node, records.get(node.name))
            except (ConflictError, NotFoundError):
                # Another client has made or removed it. The watch delivers the change.
                continue
            except MachineError as error:
                log.warning("hardware_not_written", node=node.name, reason=str(error)[:300])
                return

    def _change(self, node: KnownNode, record: Record | None) -> Mapping[str, Any]:
        if record is not None and not record.is_ours:
            return {}
        status = hardware_status(node, self.products)
        if not status:
            return {}
        return merge_change({} if record is None else record.status, status, (UPDATED,))

    def _write(self, node: KnownNode, record: Record | None) -> None:
        path = f"{HARDWARES}/{node.name}"
        if record is None:
            owner = reference_to(Owner("v1", "Node", node.name, node.uid))
            labels = {MANAGED_BY: MANAGER}
            document = {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": KIND,
                "metadata": {"name": node.name, "labels": labels, "ownerReferences": [owner]},
                "spec": {"nodeName": node.name},
            }
            self.wrote(self.server.post(HARDWARES, document))
        at = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        status = {**self._change(node, record), UPDATED: at}
        self.wrote(self.server.patch(f"{path}/status", {"status": status}))


def _named(names: tuple[str, ...], key: str) -> Mapping[str, str]:
    raw = {"rawModel": names[0]} if names else {}
    return {**raw, "model": key} if key else raw


def _cpu_range(found: Hardware) -> Mapping[str, Any]:
    """Return the range of a socket's caps, nothing if it is not known."""
    least, most = found.min_watts_per_socket, found.max_watts_per_socket
    watts = {"minWattsPerSocket": least, "maxWattsPerSocket": most}
    return {"capRange": {"type": "package", **watts}} if most else {}


def _gpu_range(found: Hardware) -> Mapping[str, Any]:
    """Return the range of a GPU's caps, nothing if it is not known."""
    least, most = found.min_watts_per_gpu, found.max_watts_per_gpu
    return {"capRangePerGpu": {"minWatts": least, "maxWatts": most}} if most else {}
