import pytest

from temper_core.engine.stats import EngineLayer, EngineStats
from temper_core.observe.layers import layer_samples
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import LayerSample, Mode, Status
from temper_core.records.tiers import LayerKind, Tier

ENFORCING = Status(Mode.ENFORCING)
PLAN = LayerPlan(
    MachineShape.uniform(4),
    (
        Layer("critical", LayerKind.CONFINED, (), Tier.CRITICAL, demoted=True, reason="no room"),
        Layer("open", LayerKind.OPEN, ((),)),
    ),
)
STATS = EngineStats(
    {
        "open": EngineLayer("open", util=50.0, tasks=9),
        "critical": EngineLayer("critical", util=123.0, tasks=3, cpus=(2, 3), affn_viol=7.5),
        "stranger": EngineLayer("stranger"),
    }
)


def test_layers_come_in_the_plans_order_with_the_engines_numbers():
    samples, defects = layer_samples(PLAN, STATS, ENFORCING)

    assert samples == (
        LayerSample(
            "critical", LayerKind.CONFINED, (2, 3), 1.23, 0.615, 3, Tier.CRITICAL, True, "no room",
            pytest.approx(0.075),
        ),
        LayerSample("open", LayerKind.OPEN, (), 0.5, None, 9),
    )  # fmt: skip
    assert defects == ()


def test_a_layer_that_the_engine_does_not_know_is_a_defect():
    samples, defects = layer_samples(PLAN, EngineStats({}), ENFORCING)

    assert samples == ()
    assert defects == (
        "layers: the engine does not report 'critical'",
        "layers: the engine does not report 'open'",
    )


@pytest.mark.parametrize(("mode", "count"), [(Mode.ENFORCING, 1), (Mode.SAFE_MODE, 0)])
def test_missing_statistics_are_a_defect_only_while_there_should_be_some(mode, count):
    samples, defects = layer_samples(PLAN, None, Status(mode))

    assert (samples, len(defects)) == ((), count)


def test_tasks_that_had_to_be_rescued_are_a_defect():
    stats = EngineStats(STATS.layers, antistall=4)

    _, defects = layer_samples(PLAN, stats, ENFORCING)

    assert defects == ("layers: the engine rescued 4 stalling tasks (antistall)",)


def test_without_a_plan_there_are_no_layers():
    assert layer_samples(None, STATS, ENFORCING) == ((), ())
