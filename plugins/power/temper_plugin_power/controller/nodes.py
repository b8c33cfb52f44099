"""Nodes as the operator keeps them, and which are in scope."""

from collections.abc import Mapping

from attrs import frozen

from temper_kube.list_pages import Json
from temper_plugin_power.placing.demands import VENDORS
from temper_plugin_power.resources.fields import text_at, value_at
from temper_plugin_power.settings.operator import GPU_MODELS

PREFIX = "joulie.io/"
PROFILE_LABEL = f"{PREFIX}power-profile"
RESERVED = f"{PREFIX}reserved"
RACK = f"{PREFIX}rack"
COOLING_ZONE = f"{PREFIX}cooling-zone"
CPU_MODELS = ("feature.node.kubernetes.io/cpu-model.name", f"{PREFIX}hw.cpu-model")
SOCKETS = ("feature.node.kubernetes.io/cpu-sockets", f"{PREFIX}hw.cpu-sockets")
GPU_COUNT = (f"{PREFIX}hw.gpu-count",)


@frozen
class KnownNode:
    """A node: its labels that matter, and its size."""

    name: str
    uid: str
    labels: Mapping[str, str]
    is_schedulable: bool
    cores: float
    gpus: int
    gpu_product: str = ""
    """The model of its GPUs by its labels."""

    @property
    def is_eligible(self) -> bool:
        """Whether the policy counts the node."""
        return self.is_schedulable and self.labels.get(RESERVED) != "true"

    @property
    def rack(self) -> str:
        """The rack that it is in, empty if that is not known."""
        return self.labels.get(RACK, "")

    @property
    def cooling_zone(self) -> str:
        """The cooling zone that it is in, empty if that is not known."""
        return self.labels.get(COOLING_ZONE, "")

    def label(self, keys: tuple[str, ...]) -> str:
        """Return the first of some labels that the node has, empty without any."""
        return next((self.labels[key] for key in keys if self.labels.get(key)), "")


def known_node(
    item: Json, selector: str, gpu_labels: tuple[str, ...] = GPU_MODELS
) -> KnownNode | None:
    """Return the record of a Node object. None if *selector* does not select it.

    *gpu_labels* are the labels that may name the model of its GPUs, the strongest first.
    """
    labels = value_at(item, "metadata.labels") or {}
    if not isinstance(labels, Mapping) or not selects(selector, labels):
        return None
    allocatable = value_at(item, "status.allocatable") or {}
    kept = {
        PROFILE_LABEL,
        RESERVED,
        *CPU_MODELS,
        *SOCKETS,
        *GPU_COUNT,
        RACK,
        COOLING_ZONE,
    }
    return KnownNode(
        name=text_at(item, "metadata.name"),
        uid=text_at(item, "metadata.uid"),
        labels={key: str(labels[key]) for key in kept if key in labels},
        is_schedulable=value_at(item, "spec.unschedulable") is not True,
        cores=_amount(allocatable.get("cpu")),
        gpus=int(sum(_amount(allocatable.get(key)) for key in VENDORS)),
        gpu_product=next((str(labels[key]) for key in gpu_labels if labels.get(key)), ""),
    )


def selects(selector: str, labels: Mapping[str, str]) -> bool:
    """Return whether *labels* have each ``key=value`` of a selector. An empty one selects all."""
    wanted = (part.partition("=") for part in selector.split(",") if part)
    return all(labels.get(key) == value for key, _, value in wanted)


def _amount(quantity: object) -> float:
    """Return a quantity in whole units or thousandths, 0 for any other."""
    text = str(quantity)
    number, unit = (text[:-1], 1000) if text.endswith("m") else (text, 1)
    return int(number) / unit if number.isdecimal() else 0.0
