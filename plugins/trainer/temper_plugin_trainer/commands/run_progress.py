"""The progress of a training: on standard error, and in what the agent is told."""

import time

import click
from attrs import define, field

from temper_core.console import Progress, printable
from temper_plugin_trainer.commands.run_reporter import RunReporter
from temper_plugin_trainer.refining.arms import MINUTE_S, Arms
from temper_plugin_trainer.refining.climb import Plan, Trial, Visit
from temper_plugin_trainer.refining.journal import Journal
from temper_plugin_trainer.refining.time_left import most_left_s, phase_of
from temper_plugin_trainer.results.run_report import LONGEST_TEXT, EndedTrial


@define
class RunProgress:
    """Shows where a climb is."""

    plan: Plan
    arms: Arms
    journal: Journal
    progress: Progress
    reporter: RunReporter
    _since: float = field(factory=time.monotonic, init=False)
    _before: int = field(default=0, init=False)
    """Measurements that the journal had. They took no time."""

    def visit(self, visit: Visit, measured: int) -> None:
        """Show what is measured next."""
        if self.journal.left:
            self._since, self._before = time.monotonic(), measured + 1
        phase = phase_of(self.plan, visit)
        block = f"block {visit.block + 1} of {phase.blocks}"
        self.progress.show(f"{measured} measured  {phase.name}, {block}  {visit.variant.change}")
        self.reporter.update(
            phase=phase.name,
            arm=visit.variant.change,
            trial=visit.trial,
            block=visit.block + 1,
            blocks=phase.blocks,
            measured=measured,
            waiting="",
            left_s=self._left_s(visit, measured),
        )

    def wait(self, why: str) -> None:
        """Show what an arm waits for."""
        self.progress.show(f"waiting: {why}")
        self.reporter.update(waiting=why)

    def trial(self, trial: Trial) -> None:
        """Print a trial that has ended."""
        why = f" ({trial.why})" if trial.why else ""
        engines = self.arms.engines_used
        self.progress.end(
            f"trial {trial.number}: {trial.candidate.change}: {100 * trial.gain:+.1f} % in "
            f"{len(trial.gains)} blocks, {trial.verdict}{why}; "
            f"{engines} engines started"
        )
        change, blocks = trial.candidate.change[:LONGEST_TEXT], len(trial.gains)
        self.reporter.add(EndedTrial(change, str(trial.verdict), trial.gain, blocks))
        self.reporter.update(engines_used=engines)

    def _left_s(self, visit: Visit, measured: int) -> float | None:
        done, passed_s = measured - self._before, time.monotonic() - self._since
        if done < 1:
            return None
        minutes = self.arms.minutes
        left = None if minutes is None else minutes - passed_s / MINUTE_S
        return most_left_s(self.plan, visit, passed_s / done, left)


def say(line: str) -> None:
    """Write a line to standard error."""
    click.echo(f"temper: {printable(line)}", err=True)
