"""The settings of the operator: the tables ``[plugins.power.operator]`` and below it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import Factory, frozen
from attrs.validators import (
    and_,
    deep_iterable,
    deep_mapping,
    ge,
    in_,
    instance_of,
    le,
    matches_re,
    max_len,
    min_len,
)

from temper_core import setting
from temper_plugin_power.settings.durations import duration

if TYPE_CHECKING:
    from fractions import Fraction

    from temper_plugin_power.operating.caps import CapShares
    from temper_plugin_power.operating.policies import Queue

POLICIES = ("static_partition", "queue_aware_v1", "rule_swap_v1")
MOST_COUNT = 1_000_000
MOST_WEIGHT = 1000.0
MOST_WATTS = 1e6
MOST_CAPACITY_WATTS = 1e12
LABEL_NAME = r"([a-zA-Z_][a-zA-Z0-9_]{0,254})?"
METRIC = r"([a-zA-Z_:][a-zA-Z0-9_:]{0,254})?"
MOST_LABELS, LONGEST_PRODUCT = 16, 128
LABEL = r"[A-Za-z0-9./_-]{1,317}"
GPU_MODELS = ("joulie.io/hw.gpu-model", "joulie.io/gpu.product", "nvidia.com/gpu.product")
FULL_PCT = 100.0


def _share(default: float, meaning: str) -> Any:  # noqa: ANN401 - attrs' own way
    return setting(default, meaning, validator=and_(instance_of(float), ge(0.0), le(1.0)))


def _percent(default: float, meaning: str) -> Any:  # noqa: ANN401 - the same
    return setting(default, meaning, validator=and_(instance_of(float), ge(0.0), le(FULL_PCT)))


def _weight(default: float, meaning: str) -> Any:  # noqa: ANN401 - the same
    return setting(default, meaning, validator=and_(instance_of(float), ge(0.0), le(MOST_WEIGHT)))


def _watts(default: float, meaning: str) -> Any:  # noqa: ANN401 - the same
    return setting(default, meaning, validator=and_(instance_of(float), ge(1.0), le(MOST_WATTS)))


def _metric(default: str, meaning: str) -> Any:  # noqa: ANN401 - the same
    form = "the name of a metric, or empty"
    return setting(default, f"{meaning} Empty is none.", validator=matches_re(METRIC), form=form)


def _count(default: int, meaning: str, least: int = 0) -> Any:  # noqa: ANN401 - the same
    return setting(default, meaning, validator=and_(instance_of(int), ge(least), le(MOST_COUNT)))


@frozen
class CapSettings:
    """The caps of nodes, in percent of the maximum of each device. 0 is no cap.

    Caps in watts are within the range of the device. If that range is not known, they stay
    percentages.
    """

    cpu_performance_pct: float = _percent(100.0, "CPU cap of a performance node.")
    cpu_eco_pct: float = _percent(60.0, "CPU cap of an eco node without GPUs.")
    gpu_performance_pct: float = _percent(100.0, "GPU cap of a performance node.")
    gpu_eco_pct: float = _percent(60.0, "GPU cap of an eco node.")
    cpu_write_absolute: bool = setting(
        False, "Whether CPU caps are written in watts of each package, and not in percent."
    )
    gpu_write_absolute: bool = setting(
        False, "Whether GPU caps are written in watts of each GPU as well."
    )
    performance_watts: float = _watts(5000.0, "CPU cap of a performance node in watts.")
    eco_watts: float = _watts(120.0, "CPU cap of an eco node without GPUs in watts.")
    gpu_models: Mapping[str, float] = setting(
        Factory(dict),
        "The greatest power of a GPU in watts by its product, for those that NodeHardware does "
        "not know. The least cap is half of it.",
        validator=deep_mapping(
            and_(instance_of(str), min_len(1), max_len(LONGEST_PRODUCT)),
            and_(instance_of(float), ge(1.0), le(MOST_WATTS)),
        ),
    )
    gpu_product_labels: tuple[str, ...] = setting(
        GPU_MODELS,
        "Labels of nodes that name the product of their GPUs, the strongest first.",
        validator=and_(deep_iterable(matches_re(LABEL)), max_len(MOST_LABELS)),
        form="the key of a node's label",
    )

    @property
    def shares(self) -> "CapShares":
        """The caps as the formulas take them."""
        from temper_plugin_power.operating.caps import CapShares  # noqa: PLC0415 - not for agents

        return CapShares(
            *(self.cpu_performance_pct, self.cpu_eco_pct),
            *(self.gpu_performance_pct, self.gpu_eco_pct),
            *(self.cpu_write_absolute, self.gpu_write_absolute),
            *(self.performance_watts, self.eco_watts),
            self.gpu_models,
        )


@frozen
class ReschedulerSettings:
    """Whether pods that may be started elsewhere are evicted from draining nodes."""

    enabled: bool = setting(False, "Whether pods are evicted.")
    interval: str = duration("60s", "The time between two turns over all draining nodes.")
    max_evictions_per_node: int = _count(1, "The most evictions of a node in a turn.", 1)
    dry_run: bool = setting(False, "Whether evictions are only told.")


@frozen
class FacilitySettings:
    """The surroundings of nodes as a facility reports them, by the Prometheus of the classifier."""

    enabled: bool = setting(False, "Whether it is asked.")
    poll: str = duration("30s", "The time between two questions.")
    ambient_metric: str = _metric(
        "datacenter_ambient_temperature_celsius",
        "The temperature around the machines in degrees Celsius; the average of its series.",
    )
    ambient_zone_label: str = setting(
        "zone",
        "The label of the temperature's series that names the cooling zone, which nodes name by "
        "joulie.io/cooling-zone. Empty is none.",
        validator=matches_re(LABEL_NAME),
        form="the name of a label in Prometheus, or empty",
    )
    it_power_metric: str = _metric(
        "datacenter_total_it_power_watts",
        "The power of all machines in watts; the sum of its series.",
    )
    cooling_power_metric: str = _metric(
        "datacenter_cooling_power_watts",
        "The power of the cooling in watts; the sum of its series.",
    )
    psu_capacity_watts: float = setting(
        0.0,
        "What the supply of all machines can give, in watts. 0: their power is no supply stress.",
        validator=and_(instance_of(float), ge(0.0), le(MOST_CAPACITY_WATTS)),
    )


@frozen
class OperatorSettings:
    """The operator, which decides on the profiles of nodes and writes NodeTwins."""

    listen: str = setting("0.0.0.0:9877", "The address and port of its probes and metrics.")
    interval: str = duration("1m", "The time between two decisions about nodes.")
    dry_run: bool = setting(
        True, "Whether the labels of nodes are only told, and not written. NodeTwins are written."
    )
    policy: str = setting(
        "static_partition",
        "How many nodes are performance nodes: static_partition, queue_aware_v1 or rule_swap_v1.",
        validator=in_(POLICIES),
    )
    static_hp_frac: float = _share(0.5, "static_partition: the share of performance nodes.")
    queue_base_frac: float = _share(0.6, "queue_aware_v1: the least share of performance nodes.")
    queue_min: int = _count(1, "queue_aware_v1: the fewest performance nodes.")
    queue_max: int = _count(MOST_COUNT, "queue_aware_v1: the most performance nodes. 0 is all.")
    queue_perf_per_hp_node: int = _count(
        10, "queue_aware_v1: performance pods of weight 1 for each performance node.", 1
    )
    queue_count_pending: bool = setting(
        True, "Whether performance pods without a node count as demand."
    )
    weight_high: float = _weight(1.5, "The weight of a pod of high intensity.")
    weight_medium: float = _weight(1.0, "The weight of a pod of medium intensity.")
    weight_low: float = _weight(0.5, "The weight of a pod of low intensity.")
    caps: CapSettings = CapSettings()
    rescheduler: ReschedulerSettings = ReschedulerSettings()
    facility: FacilitySettings = FacilitySettings()

    @property
    def queue(self) -> "Queue":
        """The settings of ``queue_aware_v1`` as its formula takes them."""
        from temper_plugin_power.operating.policies import Queue  # noqa: PLC0415 - not for agents

        return Queue(
            self.queue_base_frac, self.queue_min, self.queue_max, self.queue_perf_per_hp_node
        )

    @property
    def weights(self) -> "dict[str, Fraction]":
        """The weights by intensity, exact as they are written."""
        from fractions import Fraction  # noqa: PLC0415 - not for agents

        written = {"high": self.weight_high, "medium": self.weight_medium, "low": self.weight_low}
        return {intensity: Fraction(str(weight)) for intensity, weight in written.items()}
