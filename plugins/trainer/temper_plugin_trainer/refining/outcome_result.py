"""Makes the result of a training, for programs and for the page of the agent."""

import math
import statistics

from temper_core.console import printable
from temper_plugin_trainer.refining.arm_readings import ArmReadings, ReadingsByArm
from temper_plugin_trainer.refining.climb import Outcome, Trial
from temper_plugin_trainer.refining.report import Setting, unknown_lines, verdict_of
from temper_plugin_trainer.refining.variants import Variant
from temper_plugin_trainer.results.training_result import (
    LONGEST_TEXT,
    MOST_LINES,
    ArmResult,
    Comparison,
    TrainingResult,
)

LARGEST_LOG = 700.0


def result_of(
    outcome: Outcome, setting: Setting, profile: str, readings: ReadingsByArm
) -> TrainingResult:
    """Return the result of *outcome* for the *profile* of that id. *readings* are of its arms."""

    def compared(trial: Trial | None) -> Comparison | None:
        return _comparison(trial, readings) if trial is not None else None

    return TrainingResult(
        workload=_short(setting.workload),
        profile=_short(profile),
        pods=tuple(map(_short, setting.pods[:MOST_LINES])),
        verdict=_short(verdict_of(outcome)),
        is_better=outcome.is_better,
        metric=_short(setting.metric),
        unit=_short(setting.unit),
        better=setting.better,
        command=_short(setting.command),
        mode=_short(setting.mode),
        engine=_short(setting.engine),
        machine=_short(setting.machine),
        kernel=_short(setting.kernel),
        date=setting.date,
        measurements=setting.measurements,
        engines_used=setting.engines_used,
        trials=tuple(_comparison(trial, readings) for trial in outcome.trials),
        baseline=statistics.median(outcome.calibration) if outcome.calibration else None,
        noise=_finite(outcome.noise / math.sqrt(2.0)) if outcome.calibration else None,
        stopped=_short(outcome.stopped),
        confirmation=compared(outcome.confirmation),
        against_stock=compared(outcome.against_stock),
        unknown=tuple(map(_short, unknown_lines(outcome, setting)))[:MOST_LINES],
    )


def _comparison(trial: Trial, readings: ReadingsByArm) -> Comparison:
    bounds = trial.bounds
    candidate = readings.of(trial.number, trial.candidate, trial.incumbent)
    against = readings.of(trial.number, trial.incumbent, trial.candidate)
    return Comparison(
        candidate=_arm(trial.candidate, candidate),
        against=_arm(trial.incumbent, against),
        blocks=len(trial.gains),
        evidence=_finite(trial.evidence),
        verdict=str(trial.verdict),
        gain=_finite(trial.gain) if trial.gains else None,
        low=_ratio(bounds.low),
        high=_ratio(bounds.high),
        why=_short(trial.why),
    )


def _arm(variant: Variant, readings: ArmReadings) -> ArmResult:
    values, waits = readings.values, readings.waits
    return ArmResult(
        change=_short(variant.change),
        median=_finite(statistics.median(values)) if values else None,
        spread=_finite(max(values) - min(values)) if values else None,
        others_wait=statistics.median(waits) if waits else None,
    )


def _ratio(log_ratio: float) -> float | None:
    """Return the ratio of a bound, None if it is unbounded or too large for a number."""
    is_bounded = math.isfinite(log_ratio) and log_ratio < LARGEST_LOG
    return math.expm1(log_ratio) if is_bounded else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _short(text: str) -> str:
    return printable(text)[:LONGEST_TEXT]
