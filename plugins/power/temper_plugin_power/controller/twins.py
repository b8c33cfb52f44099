"""NodeTwin and NodeHardware objects of the cluster, as the operator keeps them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from attrs import evolve, frozen

from temper_kube.list_pages import Json, version_of
from temper_plugin_power.controller.nodes import (
    CPU_MODELS,
    GPU_COUNT,
    GPU_MODELS,
    SOCKETS,
    KnownNode,
)
from temper_plugin_power.operating.partition import NodeShape
from temper_plugin_power.operating.twin import Hardware
from temper_plugin_power.resources.definitions import GROUP, VERSION
from temper_plugin_power.resources.fields import number_at, text_at, value_at
from temper_plugin_power.resources.reading import age_s, hardware_at

API = f"/apis/{GROUP}/{VERSION}"
TWINS, HARDWARES = f"{API}/nodetwins", f"{API}/nodehardwares"
OF_THE_NODE = ("controlStatus",)
"""Fields of the status that the node's agent writes."""
GPU_WATTS = 350.0
"""Of a GPU whose maximum is not known."""
MHZ_PER_GHZ = 1000


@frozen
class StoredTwin:
    """A NodeTwin as the API server has it."""

    name: str
    uid: str
    version: str
    spec: Mapping[str, Any]
    status: Mapping[str, Any]

    @property
    def profile(self) -> str:
        """The profile in force, empty without one."""
        return text_at(self.spec, "profile")

    def age_s(self, now: datetime) -> float | None:
        """Return the seconds since it was updated, None if that is not known."""
        return age_s({"status": self.status}, now)


@frozen
class Record:
    """What a NodeHardware says of a node."""

    hardware: Hardware
    cpu_models: tuple[str, ...]
    gpu_models: tuple[str, ...]
    boost_ghz: float


def stored_twin(item: Json) -> StoredTwin:
    """Return the record of a NodeTwin."""
    spec, status = (value_at(item, key) for key in ("spec", "status"))
    return StoredTwin(
        name=text_at(item, "metadata.name"),
        uid=text_at(item, "metadata.uid"),
        version=version_of(item),
        spec=spec if isinstance(spec, Mapping) else {},
        status=status if isinstance(status, Mapping) else {},
    )


def hardware_record(item: Json) -> Record:
    """Return the record of a NodeHardware."""
    models = {
        part: tuple(text_at(item, f"status.{part}.{key}") for key in ("model", "rawModel"))
        for part in ("cpu", "gpu")
    }
    boost = number_at(item, "status.cpu.landmarks.maxBoostMHz") / MHZ_PER_GHZ
    return Record(hardware_at(item), models["cpu"], models["gpu"], boost)


def hardware_of(node: KnownNode, record: Record | None) -> Hardware:
    """Return the hardware of a node: by its record, else by its labels and its size."""
    known = Hardware() if record is None else record.hardware
    if not known.cores:
        known = evolve(known, cores=int(node.cores), sockets=_count(node.label(SOCKETS)))
    gpus = node.gpus or _count(node.label(GPU_COUNT))
    if gpus and not known.has_gpu:
        known = evolve(known, has_gpu=True, gpus=gpus)
    return known


def shape_of(node: KnownNode, record: Record | None) -> NodeShape:
    """Return what the choice of performance nodes needs."""
    hardware = hardware_of(node, record)
    watts = hardware.max_watts_per_socket * hardware.sockets
    boost = record.boost_ghz if record is not None else 0.0
    cpus = watts * boost if watts and boost else float(hardware.cores)
    gpus = hardware.gpus * (hardware.max_watts_per_gpu or GPU_WATTS)
    labels = tuple(filter(None, (node.label(CPU_MODELS),)))
    gpu_labels = tuple(filter(None, (node.label(GPU_MODELS),)))
    return NodeShape(
        name=node.name,
        density=cpus + gpus,
        cpu_models=(record.cpu_models if record else ()) + labels,
        gpu_models=(record.gpu_models if record else ()) + gpu_labels,
        gpus=hardware.gpus,
        has_record=record is not None or bool(labels or gpu_labels),
    )


def _count(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= 6 else 0  # noqa: PLR2004 - digits
