"""NodeTwin and NodeHardware objects of the cluster, as the operator keeps them."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from attrs import evolve, field, frozen

from temper_kube.list_pages import Json, version_of
from temper_plugin_power.controller.managed import MANAGED_BY, MANAGER
from temper_plugin_power.controller.nodes import (
    CPU_MODELS,
    GPU_COUNT,
    SOCKETS,
    KnownNode,
)
from temper_plugin_power.operating.catalogue import (
    LEAST_CPU_SHARE,
    LEAST_GPU_SHARE,
    cpu_model,
    gpu_model,
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
    """The hardware of a node by its NodeHardware."""

    hardware: Hardware
    cpu_models: tuple[str, ...]
    gpu_models: tuple[str, ...]
    boost_ghz: float
    slicing_modes: tuple[str, ...] = ()
    """The ways in which its GPUs can be shared."""
    is_ours: bool = False
    """Whether the operator has written it."""
    status: Mapping[str, Any] = field(factory=dict, eq=False)
    """The fields that the operator has written, without those of others."""


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
    modes = value_at(item, "status.gpu.slicing.modes")
    sharing = tuple(str(each) for each in modes) if isinstance(modes, list) else ()
    is_ours = (value_at(item, "metadata.labels") or {}).get(MANAGED_BY) == MANAGER
    status = value_at(item, "status") if is_ours else None
    return Record(
        *(hardware_at(item), models["cpu"], models["gpu"], boost, sharing),
        is_ours=is_ours,
        status=status if isinstance(status, Mapping) else {},
    )


def hardware_of(
    node: KnownNode, record: Record | None, products: Mapping[str, float] = MappingProxyType({})
) -> Hardware:
    """Return the hardware of a node: by its record, else by its labels and its size.

    Power that the record lacks follows from the models: that of GPUs from *products*,
    the greatest caps in watts that the settings give, then from the catalogue.
    """
    known = Hardware() if record is None else record.hardware
    if not known.cores:
        known = evolve(known, cores=int(node.cores), sockets=_count(node.label(SOCKETS)))
    gpus = node.gpus or _count(node.label(GPU_COUNT))
    if gpus and not known.has_gpu:
        known = evolve(known, has_gpu=True, gpus=gpus)
    return _with_gpu_power(_with_cpu_power(known, node, record), node, record, products)


def _with_cpu_power(known: Hardware, node: KnownNode, record: Record | None) -> Hardware:
    model = cpu_model(cpu_names(node, record))
    if known.max_watts_per_socket or model is None:
        return known
    watts = model.tdp_watts
    least = watts * LEAST_CPU_SHARE
    return evolve(known, max_watts_per_socket=watts, min_watts_per_socket=least)


def _with_gpu_power(
    known: Hardware, node: KnownNode, record: Record | None, products: Mapping[str, float]
) -> Hardware:
    if known.max_watts_per_gpu or not known.has_gpu:
        return known
    names = gpu_names(node, record)
    given = next((products[name] for name in names if name in products), None)
    model = gpu_model(names)
    if given is None and model is None:
        return known
    watts = given if given is not None else model.board_watts if model is not None else 0.0
    return evolve(known, max_watts_per_gpu=watts, min_watts_per_gpu=watts * LEAST_GPU_SHARE)


def cpu_names(node: KnownNode, record: Record | None) -> tuple[str, ...]:
    """Return the names of the processors of a node, the strongest first."""
    return (*(record.cpu_models if record else ()), *filter(None, (node.label(CPU_MODELS),)))


def gpu_names(node: KnownNode, record: Record | None) -> tuple[str, ...]:
    """Return the names of the GPUs of a node, the strongest first."""
    return (*(record.gpu_models if record else ()), *filter(None, (node.gpu_product,)))


def shape_of(node: KnownNode, record: Record | None) -> NodeShape:
    """Return what the choice of performance nodes needs."""
    hardware = hardware_of(node, record)
    watts = hardware.max_watts_per_socket * hardware.sockets
    model = cpu_model(cpu_names(node, record))
    usual = 0.0 if model is None else model.boost_ghz
    boost = usual if record is None else record.boost_ghz or usual
    cpus = watts * boost if watts and boost else float(hardware.cores)
    gpus = hardware.gpus * (hardware.max_watts_per_gpu or GPU_WATTS)
    return NodeShape(
        name=node.name,
        density=cpus + gpus,
        cpu_models=cpu_names(node, record),
        gpu_models=gpu_names(node, record),
        gpus=hardware.gpus,
        has_record=record is not None or bool(node.label(CPU_MODELS) or node.gpu_product),
    )


def _count(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= 6 else 0  # noqa: PLR2004 - digits
