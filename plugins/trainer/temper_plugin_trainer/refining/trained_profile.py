"""The profile that a climb ends with, with its evidence."""

import statistics
from collections.abc import Sequence
from typing import Any

from temper_core import parse_profile
from temper_plugin_trainer.refining.climb import Outcome
from temper_plugin_trainer.refining.profile_table import Table, toml_of
from temper_plugin_trainer.refining.report import PROFILE, REPORT, Setting
from temper_plugin_trainer.refining.trial_door import OBSERVING

LONGEST_TEXT = 500
LONGEST_MEASURE = 60


def trained_profile(outcome: Outcome, original: Table, setting: Setting) -> str:
    """Return the best profile of *outcome* as TOML, under the id of *original*.

    Its figures are those of the confirmation. If the agent only observed, nothing was measured.
    """
    table = {**outcome.best.table, "id": original["id"], "evidence": _evidence(outcome, setting)}
    lines = [
        "# Made by temper train run. Every change was measured against the arm before it:",
        *(
            f"# {trial.candidate.change} ({100 * trial.gain:+.1f} %)"
            for trial in outcome.trials
            if trial.verdict == "kept"
        ),
        f"# {REPORT} beside it has all trials.",
    ]
    text = "\n".join(lines) + "\n" + toml_of(table)
    parse_profile(text, PROFILE)
    return text


def _evidence(outcome: Outcome, setting: Setting) -> dict[str, Any]:
    known = {"machine": setting.machine, "kernel": setting.kernel, "date": setting.date}
    before, after = outcome.confirmed
    if setting.mode == OBSERVING or not before:
        return {"effect": "not measured", **known}
    figure = {
        "measure": setting.metric[:LONGEST_MEASURE],
        "tiers_only": statistics.median(before),
        "profile": statistics.median(after),
        "spread": max(_range(before), _range(after)),
        "unit": setting.unit,
        "better": setting.better,
    }
    return {
        "effect": _effect(figure),
        **known,
        "engine": setting.engine[:LONGEST_TEXT],
        "command": setting.command[:LONGEST_TEXT],
        "figures": [figure],
    }


def _range(values: Sequence[float]) -> float:
    return max(values) - min(values)


def _effect(figure: dict[str, Any]) -> str:
    """Return the effect that the figure shows, by the rule of profiles: it exceeds the spread."""
    gain = figure["tiers_only"] - figure["profile"]
    if figure["better"] == "higher":
        gain = -gain
    if abs(gain) <= figure["spread"] * (1.0 + 1e-9):
        return "within the spread"
    return "better" if gain > 0.0 else "worse"
