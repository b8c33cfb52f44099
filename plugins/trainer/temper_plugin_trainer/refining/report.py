"""The report of a climb: every trial with its interval, the verdict, and what is not known."""

import hashlib
import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from temper_core.console import printable
from temper_plugin_trainer.refining.arm_traces import ArmTrace
from temper_plugin_trainer.refining.climb import (
    CALIBRATIONS,
    CONFIRMATIONS,
    FAMILY_ERROR,
    Outcome,
    Trial,
    Verdict,
)
from temper_plugin_trainer.refining.trial_door import OBSERVING

NO_IMPROVEMENT = "no improvement found"
PLOT, PROFILE, JOURNAL, REPORT = "climb.svg", "profile.toml", "journal.jsonl", "REPORT.md"
RESULT = "result.json"


@frozen
class Setting:
    """The place and the method of a climb's measurements."""

    workload: str
    pods: Sequence[str]
    command: str
    metric: str
    unit: str
    better: str
    mode: str
    engine: str
    machine: str
    kernel: str
    date: str
    engines_used: int
    measurements: int
    bundles: Sequence[tuple[str, str]] = ()
    groups: Sequence[str] = ()
    untold: Sequence[str] = ()
    traces: Sequence[ArmTrace] = ()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of the file at *path*."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def verdict_of(outcome: Outcome) -> str:
    """Return the verdict in one line."""
    if not outcome.is_better or outcome.confirmation is None:
        return NO_IMPROVEMENT
    return f"the profile is better than the tier alone: {_interval(outcome.confirmation)}"


def report(outcome: Outcome, setting: Setting) -> str:
    """Return the report as Markdown."""
    parts = (
        _head(outcome, setting),
        _circumstances(outcome, setting),
        _trials(outcome),
        _confirmation(outcome, setting),
        _against_stock(outcome),
        _groups(setting),
        _traces(setting),
        _unknown(outcome, setting),
    )
    return "\n".join(line for part in parts for line in part)


def _head(outcome: Outcome, setting: Setting) -> Iterator[str]:
    plan = outcome.plan
    yield from (f"# Training of {_plain(setting.workload)}", "")
    yield from (f"**Verdict: {verdict_of(outcome)}.**", "")
    yield (
        f"If no candidate is better than the arm it is compared with, a run keeps one with a "
        f"probability of at most {FAMILY_ERROR:g}. This holds for the whole run of up to "
        f"{plan.trials} trials, for every distribution of the noise and at every stop: a trial "
        f"keeps a candidate from an evidence of {plan.limit:g} on."
    )
    yield ""
    if outcome.stopped:
        yield from (f"The run ended early: {_plain(outcome.stopped)}.", "")


def _circumstances(outcome: Outcome, setting: Setting) -> Iterator[str]:
    noise = outcome.noise / math.sqrt(2.0)
    unit = f" {_plain(setting.unit)}" if setting.unit else ""
    baseline = statistics.median(outcome.calibration) if outcome.calibration else math.nan
    rows = {
        "pods": ", ".join(setting.pods),
        "benchmark": f"`{_plain(setting.command)}`",
        "metric": f"{_plain(setting.metric)}{unit}, {setting.better} is better",
        "tier alone": f"{baseline:.4g}{unit}, the median of {CALIBRATIONS} runs at the start",
        "noise of a run": f"{100 * noise:.1f} %, the deviation of these runs",
        "agent": f"{setting.mode}, engine {_plain(setting.engine)}",
        "machine": _plain(setting.machine),
        "kernel": _plain(setting.kernel),
        "date": setting.date,
        "measurements": f"{setting.measurements}, in [{JOURNAL}]({JOURNAL})",
        "engines started": str(setting.engines_used),
        **{f"bundle {_plain(name)}": f"SHA-256 `{digest}`" for name, digest in setting.bundles},
    }
    yield from ("| | |", "| --- | --- |")
    yield from (f"| {name} | {value} |" for name, value in rows.items())
    yield ""


def _trials(outcome: Outcome) -> Iterator[str]:
    yield from ("## Trials", "")
    if not outcome.trials:
        yield from ("There was none.", "")
        return
    yield from (f"![the gain of each trial]({PLOT})", "")
    yield "| | change | against | blocks | gain | 95 % interval | evidence | verdict |"
    yield "| --: | --- | --- | --: | --: | --- | --: | --- |"
    for trial in outcome.trials:
        yield _trial_row(trial)
    yield ""
    yield (
        "A gain is the median over blocks of the ratio between the two arms of a block. Each "
        "interval is valid at the block at which its trial stopped, and for that trial alone."
    )
    yield ""


def _trial_row(trial: Trial) -> str:
    why = f": {_plain(trial.why)}" if trial.why else ""
    gain = f"{100 * trial.gain:+.1f} %" if trial.gains else "-"
    return (
        f"| {trial.number} | {_plain(trial.candidate.change)} | "
        f"{_plain(trial.incumbent.change)} | {len(trial.gains)} | {gain} | {_bounds(trial)} | "
        f"{trial.evidence:.3g} | {trial.verdict}{why} |"
    )


def _confirmation(outcome: Outcome, setting: Setting) -> Iterator[str]:
    trial = outcome.confirmation
    if trial is None:
        return
    unit = f" {_plain(setting.unit)}" if setting.unit else ""
    yield from ("## Confirmation", "")
    yield (
        f"The best profile was measured against the tier alone on {CONFIRMATIONS} fresh blocks, "
        f"because those that chose it flatter it: {_interval(trial)}."
    )
    if trial.verdict is not Verdict.KEPT:
        yield f"It was not confirmed{': ' + _plain(trial.why) if trial.why else ''}."
    before, after = outcome.confirmed
    if before:
        yield (
            f"The median was {statistics.median(before):.4g}{unit} with the tier alone and "
            f"{statistics.median(after):.4g}{unit} with the profile."
        )
    yield ""


def _against_stock(outcome: Outcome) -> Iterator[str]:
    trial = outcome.against_stock
    if trial is None:
        return
    yield from ("## The stock scheduler", "")
    what = "The profile" if outcome.is_better else "The tier alone"
    yield (
        f"{what} was measured against the stock scheduler on {len(trial.gains)} blocks: "
        f"{_interval(trial)}."
    )
    if trial.why:
        yield f"The comparison ended early: {_plain(trial.why)}."
    yield ""


def _groups(setting: Setting) -> Iterator[str]:
    if setting.groups:
        yield from ("## Groups", "", *(f"- {_plain(line)}" for line in setting.groups), "")


def _traces(setting: Setting) -> Iterator[str]:
    if not setting.traces:
        return
    yield from ("## Traces", "")
    for trace in setting.traces:
        if trace.reason:
            yield f"- {trace.arm}: no trace. {_plain(trace.reason)}."
        else:
            yield (
                f"- [{trace.file}]({trace.file}): {trace.seconds:.2f} s, {trace.events} events, "
                f"{trace.bytes} bytes, ended by {_plain(trace.ended_by)}, SHA-256 `{trace.sha256}`"
            )
    yield ""


def _unknown(outcome: Outcome, setting: Setting) -> Iterator[str]:
    yield from ("## What it could not tell", "")
    yield from (f"- {_plain(line)}" for line in unknown_lines(outcome, setting))
    yield ""


def unknown_lines(outcome: Outcome, setting: Setting) -> Iterator[str]:
    """Yield what the climb could not tell, one fact a line."""
    yield from setting.untold
    if setting.mode == OBSERVING:
        yield "The agent only observed, so no arm had an effect. This is a rehearsal."
    for trial in outcome.trials:
        if trial.verdict is Verdict.NOT_SHOWN:
            yield f"Whether trial {trial.number} is better: its blocks do not decide it."
        if trial.verdict in (Verdict.NOT_IN_FORCE, Verdict.OUT_OF_TIME):
            yield f"Whether trial {trial.number} is better: it was not measured to the end."
    if len(outcome.trials) == outcome.plan.trials:
        yield "Whether there is a better neighbour: the budget of trials ended first."
    yield "Whether it holds for other loads, other machines or other neighbours on the node."
    yield "Combinations that no path of single improvements reaches."


def _interval(trial: Trial) -> str:
    return f"{100 * trial.gain:+.1f} %, 95 % interval {_bounds(trial)}"


def _bounds(trial: Trial) -> str:
    return f"{_percent(trial.bounds.low)} to {_percent(trial.bounds.high)}"


def _percent(log_ratio: float) -> str:
    return f"{100 * math.expm1(log_ratio):+.1f} %" if math.isfinite(log_ratio) else "unbounded"


def _plain(text: str) -> str:
    """Return *text* for a cell of a table: printable, and without signs of Markdown."""
    return printable(text).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
