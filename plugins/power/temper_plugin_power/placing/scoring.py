"""The score of a node for a pod, term by term, and which nodes take it at all."""

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from temper_plugin_power.numbers import clamped, half_away
from temper_plugin_power.operating.twin import Hardware, Twin
from temper_plugin_power.placing.demands import PodDemand
from temper_plugin_power.placing.marginal import Coefficients, impact_of
from temper_plugin_power.standing import Standing

NEUTRAL = 50
OLD_AFTER_S = 300.0
PERFORMANCE_BONUS, ECO_BONUS = 15.0, 10.0
PRESSURE_SHARE = 0.3
EVICTION_PENALTY = 25.0
IDLE_GPU_PENALTY = 30.0
SENSITIVITY = {"high": 1.0, "medium": 0.5, "low": 0.2}
FULL_SCALE = 100
REJECTED = "temper: performance pod rejected from eco/draining node"
REJECTED_BY_LABEL = "temper: performance pod rejected from eco node (label fallback)"


@frozen
class NodeView:
    """What is known of a node. *age_s* is that of its twin, in seconds; None is stale."""

    twin: Twin | None = None
    age_s: float | None = None
    hardware: Hardware | None = None
    label_profile: str = ""
    """The node label ``power-profile``."""
    measured_pue: float | None = None

    @property
    def fresh_twin(self) -> Twin | None:
        """The twin, None if it is stale."""
        return self.twin if self.age_s is not None and self.age_s <= OLD_AFTER_S else None


@frozen
class PodView:
    """What is known of a pod."""

    standing: Standing
    demand: PodDemand
    evicted_from: str | None = None
    """The class of the node that its owner was lately evicted from."""


@frozen
class Choices:
    """The settings of scoring."""

    is_marginal: bool = True
    coefficients: Coefficients = Coefficients()
    cap_penalty_cpu: float = 40.0
    cap_penalty_gpu: float = 40.0


@frozen
class Score:
    """The points of a node, and the terms that they are the sum of."""

    points: int
    terms: Mapping[str, float] = field(factory=dict)

    def on_scale(self, most: int) -> int:
        """Return the points on a scale from 0 to *most*, halves rounded away from zero."""
        return half_away(self.points * most / FULL_SCALE)


def rejection(pod: PodView, node: NodeView) -> str | None:
    """Return why *node* does not take *pod*, None if it does. The age of the twin is no matter.

    Only performance pods are rejected, and pods that were lately evicted from an eco node.
    """
    standing = pod.standing
    is_evicted = pod.evicted_from == "eco"
    if standing.workload_class != "performance" and not is_evicted:
        return None
    is_performance = standing.workload_class == "performance"
    source = standing.class_source if is_performance else "eviction"
    if node.twin is not None and node.twin.schedulable_class in ("eco", "draining"):
        return f"{REJECTED} (class from {source})"
    if node.label_profile == "eco":
        return f"{REJECTED_BY_LABEL} (class from {source})"
    return None


def performance_pressure(nodes: Iterable[NodeView]) -> float:
    """Return how full the performance nodes are, 0 to 100, by their fresh twins."""
    twins = [twin for node in nodes if (twin := node.fresh_twin) is not None]
    used = [100 - twin.headroom for twin in twins if twin.schedulable_class == "performance"]
    return sum(used) / len(used) if used else 0.0


def score(pod: PodView, node: NodeView, pressure: float, choices: Choices) -> Score:
    """Return the score of *node* for *pod*. A node without a fresh twin gets a neutral one.

    *pressure* is that of ``performance_pressure``.
    """
    twin = node.fresh_twin
    if twin is None:
        return Score(NEUTRAL)
    terms = {
        "base": 0.4 * twin.headroom
        + 0.3 * (100 - twin.cooling_stress)
        + 0.3 * (100 - twin.psu_stress),
        "class": _class_points(pod.standing.workload_class, twin.schedulable_class, pressure),
        "eviction": -EVICTION_PENALTY * (pod.evicted_from == twin.schedulable_class),
        "marginal": -_marginal_penalty(pod, node, choices),
        "sensitivity": -_cap_penalty(pod.standing, twin, node.hardware, choices),
    }
    # Adding 0 turns -0.0 into 0.0, which reads better.
    shown = {name: value + 0.0 for name, value in terms.items()}
    return Score(int(clamped(sum(shown.values()))), shown)


def _class_points(workload_class: str, node_class: str, pressure: float) -> float:
    return {
        ("performance", "performance"): PERFORMANCE_BONUS,
        ("standard", "eco"): ECO_BONUS,
        ("standard", "performance"): -PRESSURE_SHARE * pressure,
    }.get((workload_class, node_class), 0.0)


def _marginal_penalty(pod: PodView, node: NodeView, choices: Choices) -> float:
    hardware = node.hardware
    if hardware is None:
        return 0.0
    if not choices.is_marginal:
        return IDLE_GPU_PENALTY if hardware.has_gpu and pod.demand.gpus == 0 else 0.0
    workload_class = pod.standing.workload_class
    impact = impact_of(pod.demand, workload_class, hardware, choices.coefficients)
    return impact.penalty(node.measured_pue)


def _cap_penalty(
    standing: Standing, twin: Twin, hardware: Hardware | None, choices: Choices
) -> float:
    """Return the points that the caps in force cost a pod of that sensitivity."""
    has_gpu = hardware is None or hardware.has_gpu
    cpu = choices.cap_penalty_cpu * _sensitivity(standing.cpu_sensitivity) * _cut(twin.cpu_pct)
    gpu = choices.cap_penalty_gpu * _sensitivity(standing.gpu_sensitivity) * _cut(twin.gpu_pct)
    return cpu + (gpu if has_gpu else 0.0)


def _sensitivity(value: str | None) -> float:
    return SENSITIVITY.get(value or "", 0.0)


def _cut(pct: float) -> float:
    """Return the share of its power that a device may not use."""
    return clamped(1 - pct / 100, 0, 1) if pct > 0 else 0.0
