"""The plan's layers with the engine's statistics."""

from temper_core.engine.stats import EngineLayer, EngineStats
from temper_core.records.layers import Layer
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import LayerSample, Mode, Status

PERCENT = 100.0


def layer_samples(
    plan: LayerPlan | None, stats: EngineStats | None, status: Status
) -> tuple[tuple[LayerSample, ...], tuple[str, ...]]:
    """Join the plan with the engine's statistics. The second part is the list of defects.

    Without statistics there are no samples, since a layer is shown as it is, not as planned.
    """
    if plan is None:
        return (), ()
    if stats is None:
        is_missed = status.mode is Mode.ENFORCING
        return (), ("layers: the engine gave no statistics",) if is_missed else ()
    samples, defects = [], []
    for layer in plan.layers:
        counted = stats.layers.get(layer.name)
        if counted is None:
            defects.append(f"layers: the engine does not report {layer.name!r}")
        else:
            samples.append(_sample(layer, counted))
    if stats.antistall:
        defects.append(f"layers: the engine rescued {stats.antistall} stalling tasks (antistall)")
    return tuple(samples), tuple(defects)


def _sample(layer: Layer, counted: EngineLayer) -> LayerSample:
    return LayerSample(
        name=layer.name,
        kind=layer.kind,
        cpus=counted.cpus,
        cpus_used=counted.cpus_used,
        util=counted.cpus_used / len(counted.cpus) if counted.cpus else None,
        tasks=counted.tasks,
        tier=layer.tier,
        demoted=layer.demoted,
        reason=layer.reason,
        fallback_ratio=_ratio(counted.affn_viol),
        outside_ratio=_ratio(counted.util_open_frac) if "util_open_frac" in counted.raw else None,
    )


def _ratio(percent: float) -> float:
    return min(1.0, max(0.0, percent / PERCENT))
