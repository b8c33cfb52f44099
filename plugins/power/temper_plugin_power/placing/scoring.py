"""The score of a node for a pod, term by term."""

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from temper_plugin_power.numbers import clamped, half_away
from temper_plugin_power.operating.twin import Hardware, Twin
from temper_plugin_power.placing.marginal import impact_of
from temper_plugin_power.placing.subjects import OLD_AFTER_S, Choices, NodeView, PodView

NEUTRAL = 50
PERFORMANCE_BONUS, ECO_BONUS = 15.0, 10.0
PRESSURE_SHARE = 0.3
EVICTION_PENALTY = 25.0
IDLE_GPU_PENALTY = 30.0
SENSITIVITY = {"high": 1.0, "medium": 0.5, "low": 0.2}
FULL_SCALE = 100


@frozen
class Score:
    """The points of a node, and the terms that they are the sum of."""

    points: int
    terms: Mapping[str, float] = field(factory=dict)

    def on_scale(self, most: int) -> int:
        """Return the points on a scale from 0 to *most*, halves rounded away from zero."""
        return half_away(self.points * most / FULL_SCALE)


@frozen(eq=False)
class NodeKind:
    """The common facts of nodes whose scores differ by their stress and caps alone."""

    node_class: str
    hardware: Hardware | None = None
    measured_pue: float | None = None


@frozen
class NodeFigures:
    """The numbers that all scores of a node with a twin follow from."""

    kind: NodeKind
    base: float
    cpu_cut: float
    """The share of their power that the CPUs may not use."""
    gpu_cut: float
    """The same of the GPUs. 0 without any."""

    @classmethod
    def of(cls, twin: Twin, kind: NodeKind) -> "NodeFigures":
        """Return the numbers of a node by its twin."""
        base = 0.4 * twin.headroom + 0.3 * (100 - twin.cooling_stress)
        has_gpu = kind.hardware is None or kind.hardware.has_gpu
        gpu_cut = _cut(twin.gpu_pct) if has_gpu else 0.0
        return cls(kind, base + 0.3 * (100 - twin.psu_stress), _cut(twin.cpu_pct), gpu_cut)


class PodTerms:
    """The terms of a pod's scores. *pressure* is that of ``performance_pressure``."""

    def __init__(self, pod: PodView, pressure: float, choices: Choices) -> None:
        self._pod, self._pressure, self._choices = pod, pressure, choices
        standing = pod.standing
        self.cpu_points = choices.cap_penalty_cpu * _sensitivity(standing.cpu_sensitivity)
        """The cost of a cut of all their power. Those of the GPUs are ``gpu_points``."""
        self.gpu_points = choices.cap_penalty_gpu * _sensitivity(standing.gpu_sensitivity)

    def of_kind(self, kind: NodeKind) -> tuple[float, float, float]:
        """Return the terms class, eviction and marginal of nodes of that *kind*."""
        evicted = self._pod.evicted_from == kind.node_class
        return (
            _class_points(self._pod.standing.workload_class, kind.node_class, self._pressure),
            -EVICTION_PENALTY if evicted else 0.0,
            -_marginal_penalty(self._pod, kind, self._choices),
        )

    def of_caps(self, figures: NodeFigures) -> float:
        """Return the term sensitivity: what the caps in force cost the pod."""
        return -(self.cpu_points * figures.cpu_cut + self.gpu_points * figures.gpu_cut)


def performance_pressure(nodes: Iterable[NodeView], old_after_s: float = OLD_AFTER_S) -> float:
    """Return how full the performance nodes are, 0 to 100, by their fresh twins."""
    twins = [twin for node in nodes if (twin := node.fresh_twin(old_after_s)) is not None]
    return mean_use(twin.headroom for twin in twins if twin.schedulable_class == "performance")


def mean_use(headrooms: Iterable[float]) -> float:
    """Return the mean use of nodes with such *headrooms*. 0 without any."""
    used = [100 - headroom for headroom in headrooms]
    return sum(used) / len(used) if used else 0.0


def score(pod: PodView, node: NodeView, pressure: float, choices: Choices) -> Score:
    """Return the score of *node* for *pod*. A node without a fresh twin gets a neutral one.

    *pressure* is that of ``performance_pressure``.
    """
    twin = node.fresh_twin(choices.twin_staleness_s)
    if twin is None:
        return Score(NEUTRAL)
    kind = NodeKind(twin.schedulable_class, node.hardware, twin.measured_pue)
    return score_of(NodeFigures.of(twin, kind), PodTerms(pod, pressure, choices))


def score_of(figures: NodeFigures, terms: PodTerms) -> Score:
    """Return the score of a node with a fresh twin."""
    by_class, eviction, marginal = terms.of_kind(figures.kind)
    caps = terms.of_caps(figures)
    points = int(clamped(figures.base + by_class + eviction + marginal + caps))
    # Adding 0 turns -0.0 into 0.0, which reads better.
    shown = {
        "base": figures.base,
        "class": by_class + 0.0,
        "eviction": eviction,
        "marginal": marginal + 0.0,
        "sensitivity": caps + 0.0,
    }
    return Score(points, shown)


def _class_points(workload_class: str, node_class: str, pressure: float) -> float:
    return {
        ("performance", "performance"): PERFORMANCE_BONUS,
        ("standard", "eco"): ECO_BONUS,
        ("standard", "performance"): -PRESSURE_SHARE * pressure,
    }.get((workload_class, node_class), 0.0)


def _marginal_penalty(pod: PodView, kind: NodeKind, choices: Choices) -> float:
    hardware = kind.hardware
    if hardware is None:
        return 0.0
    if not choices.is_marginal:
        return IDLE_GPU_PENALTY if hardware.has_gpu and pod.demand.gpus == 0 else 0.0
    workload_class = pod.standing.workload_class
    impact = impact_of(pod.demand, workload_class, hardware, choices.coefficients)
    return impact.penalty(kind.measured_pue)


def _sensitivity(value: str | None) -> float:
    return SENSITIVITY.get(value or "", 0.0)


def _cut(pct: float) -> float:
    """Return the share of its power that a device may not use."""
    return clamped(1 - pct / 100, 0, 1) if pct > 0 else 0.0
