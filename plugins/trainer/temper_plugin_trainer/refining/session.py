"""A climb on an agent: recorded answers first, then new ones, and the record of all."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from temper_core import InputError
from temper_core.observed import number, text
from temper_plugin_trainer.output_files import SHARED, created, write_whole
from temper_plugin_trainer.refining.arm_readings import ReadingsByArm
from temper_plugin_trainer.refining.arms import Arms, recorded
from temper_plugin_trainer.refining.benchmark_runs import RunInterruptedError
from temper_plugin_trainer.refining.climb import (
    Outcome,
    Plan,
    Reading,
    Trial,
    Verdict,
    Visit,
    climb,
)
from temper_plugin_trainer.refining.journal import Journal


@define
class Session:
    """Runs the climb of *plan*. ``shown`` is called before, ``told`` after each trial."""

    plan: Plan
    journal: Journal
    arms: Arms
    shown: Callable[[Visit, int], None] = lambda _visit, _measured: None
    told: Callable[[Trial], None] = lambda _: None
    measured: int = field(default=0, init=False)
    readings: ReadingsByArm = field(factory=ReadingsByArm, init=False)

    def run(self) -> Outcome:
        """Climb to the end. No trial is left in force, however this ends.

        Raises RunInterruptedError if the user interrupts or aborts it. The same session, made anew
        with its journal, then continues.
        """
        try:
            return self._climbed()
        except RunInterruptedError as error:
            raise RunInterruptedError(
                f"{error} after {self.measured} measurements; the same command continues"
            ) from error
        finally:
            self.arms.close()

    def _climbed(self) -> Outcome:
        steps = climb(self.plan, self.told)
        try:
            visit = next(steps)
            while True:
                self.shown(visit, self.measured)
                visit = steps.send(self._answered(visit))
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    def _answered(self, visit: Visit) -> Reading:
        row = self.journal.taken()
        if row is None:
            reading = self.arms.answer(visit)
            self.journal.add(recorded(visit, reading, self.arms))
        else:
            reading = self._replayed(visit, row)
        self.measured += 1
        self.readings.add(visit, reading)
        return reading

    def _replayed(self, visit: Visit, row: Mapping[str, Any]) -> Reading:
        if (row.get("trial"), row.get("arm")) != (visit.trial, visit.variant.key):
            raise InputError(
                f"{self.journal.path}: measurement {self.measured + 1} is of another arm than "
                "this version of temper asks for; begin anew with another --artifacts"
            )
        try:
            return self._measured(row)
        except (TypeError, ValueError) as error:
            line = self.measured + 2
            raise InputError(f"{self.journal.path}: line {line}: is no measurement") from error

    def _measured(self, row: Mapping[str, Any]) -> Reading:
        """Take a recorded line. Raise TypeError or ValueError if it is malformed."""
        guards = self.arms.guards
        guards.known |= {*map(str, row.get("violations") or ())}
        guards.most_waits = max(guards.most_waits, number(row, "waits") or 0.0)
        self.arms.engines_before = int(number(row, "engines") or 0)
        self.arms.unit, self.arms.better = text(row, "unit"), text(row, "better")
        value = number(row, "value")
        if value is not None and value > 0.0:
            return Reading(value, others_wait=number(row, "others_wait"))
        return Reading(None, text(row, "why"), Verdict(text(row, "verdict")))


def write_atomically(path: Path, content: str | bytes, mode: int = SHARED) -> None:
    """Put *content* in place of the file at *path*, whole or not at all. Raise InputError."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)  # of a run that was killed
        with created(new, mode) as file:
            write_whole(file, content.encode() if isinstance(content, str) else content, path)
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
