"""The metric families of the node's side."""

from collections import Counter
from collections.abc import Iterator, Mapping

from attrs import field, frozen

from temper_core import Metric, MetricFamily, MetricSample, PanelHint
from temper_plugin_power.node.gpus import Gpu
from temper_plugin_power.node.readings import Power

PACKAGE = MetricFamily(
    "temper_power_package_watts",
    "Power of the node's processor packages in the last window, by RAPL.",
    labels=("node",),
    panels=(PanelHint("Power", legend="packages"),),
)
DRAM = MetricFamily(
    "temper_power_dram_watts",
    "Power of the memory of the node's processor packages in the last window, by RAPL.",
    labels=("node",),
    panels=(PanelHint("Power", legend="memory"),),
)
GPU = MetricFamily(
    "temper_power_gpu_watts",
    "Power of a GPU, as nvidia-smi prints it.",
    labels=("node", "gpu"),
    panels=(PanelHint("Power", legend="GPU {{gpu}}"),),
)
TIER = MetricFamily(
    "temper_power_tier_watts",
    "Package power of a tier by its share of CPU time, idle power included. It is a share, and no "
    "measurement.",
    labels=("node", "tier"),
    panels=(PanelHint("Package power by share of CPU time", legend="{{tier}}"),),
)
CAP = MetricFamily(
    "temper_power_cap_watts",
    "Power limit in force. The domain is a package of the kernel or a GPU.",
    labels=("node", "domain"),
    panels=(PanelHint("Power limits", legend="{{domain}}"),),
)
BACKEND = MetricFamily(
    "temper_power_backend",
    "1 for each source of power readings: rapl, host-nvidia or none.",
    labels=("node", "backend"),
    panels=(PanelHint("Sources of power readings", legend="{{backend}}"),),
)
ACTIONS = MetricFamily(
    "temper_power_actions_total",
    "Changes of power limits: applied, restored or blocked.",
    kind="counter",
    labels=("node", "action"),
)
ERRORS = MetricFamily(
    "temper_power_errors_total",
    "Power limits that could not be set or given back.",
    kind="counter",
    labels=("node",),
)
FAMILIES = (PACKAGE, DRAM, GPU, TIER, CAP, BACKEND, ACTIONS, ERRORS)
ERROR = "error"


@frozen
class NodePower:
    """All that the metrics show."""

    power: Power = Power()
    tiers: Mapping[str, float] = field(factory=dict)
    gpus: tuple[Gpu, ...] = ()
    backends: tuple[str, ...] = ("none",)


def node_metrics(node: str, seen: NodePower, actions: Mapping[str, int]) -> Iterator[Metric]:
    """Yield the families. One without a value has no sample."""
    packages, gpus = seen.power.packages, seen.gpus
    limits = [(each.name, each.limit_watts) for each in packages]
    limits += [(f"gpu-{each.index}", each.limit_watts) for each in gpus]
    done = Counter({key: count for key, count in actions.items() if key != ERROR})
    tables: dict[MetricFamily, list[tuple[tuple[str, ...], float | None]]] = {
        PACKAGE: [((), seen.power.package_watts)],
        DRAM: [((), seen.power.dram_watts)],
        GPU: [((str(each.index),), each.watts) for each in gpus],
        TIER: [((tier,), watts) for tier, watts in seen.tiers.items()],
        CAP: [((domain,), watts) for domain, watts in limits],
        BACKEND: [((backend,), 1.0) for backend in seen.backends],
        ACTIONS: [((kind,), float(count)) for kind, count in sorted(done.items())],
        ERRORS: [((), float(actions.get(ERROR, 0)))],
    }
    for family, rows in tables.items():
        yield family.metric(
            [
                MetricSample(value, dict(zip(family.labels, (node, *labels), strict=True)))
                for labels, value in rows
                if value is not None
            ]
        )
