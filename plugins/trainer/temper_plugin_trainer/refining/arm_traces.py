"""A kernel trace of each arm of a result: one more run of the benchmark, which counts for nothing.

A capture takes time of the CPUs that it records. So no measurement of a climb is traced.
"""

import hashlib
from pathlib import Path

from attrs import define, frozen

from temper_core import InputError, TemperError
from temper_plugin_trainer.output_files import PRIVATE
from temper_plugin_trainer.refining.arms import Arms
from temper_plugin_trainer.refining.benchmark_runs import RunInterruptedError
from temper_plugin_trainer.refining.climb import Outcome, Visit
from temper_plugin_trainer.refining.door_traces import Capture, DoorTraces
from temper_plugin_trainer.refining.session import write_atomically
from temper_plugin_trainer.refining.variants import Variant

DIRECTORY = "traces"
NOT_ASKED = "--no-trace was given"


@frozen
class ArmTrace:
    """The trace of an arm, a file of *bytes* below the record. *reason* says why there is none."""

    arm: str
    reason: str = ""
    file: str = ""
    sha256: str = ""
    bytes: int = 0
    events: int = 0
    seconds: float = 0.0
    ended_by: str = ""


@define
class ArmTraces:
    """Takes the traces of an outcome into *directory*, the record of the run."""

    arms: Arms
    directory: Path

    def of(self, outcome: Outcome) -> tuple[ArmTrace, ...]:
        """Return the traces of the tier alone and of the best arm. No arm is left in force.

        Without a better arm the first candidate is traced. Raises RunInterruptedError.
        """
        plan = outcome.plan
        other = plan.start if outcome.best is plan.baseline else outcome.best
        names = {"tier-alone": plan.baseline, "profile": other}
        if outcome.stopped:
            return tuple(ArmTrace(name, "the run ended early") for name in names)
        try:
            self._door.require()
        except TemperError as error:
            return tuple(ArmTrace(name, str(error)) for name in names)
        try:
            return tuple(self._traced(name, variant) for name, variant in names.items())
        finally:
            self.arms.close()

    @property
    def _door(self) -> DoorTraces:
        return DoorTraces(self.arms.door.ask, self.arms.wait)

    def _traced(self, name: str, variant: Variant) -> ArmTrace:
        traces = self._door
        path = self.directory / DIRECTORY / f"{name}.pftrace"
        path.unlink(missing_ok=True)
        capture = ""

        def begin() -> None:
            nonlocal capture
            capture = traces.begin({"pod": self.arms.door.pods[0]})

        try:
            reading = self.arms.answer(Visit(variant, 1, 0, is_confirmation=True), begin)
            if reading.value is None:
                return ArmTrace(name, reading.why)
            return _kept(name, path, traces.taken(capture))
        except RunInterruptedError:
            raise
        except TemperError as error:
            return ArmTrace(name, str(error))
        finally:
            if capture:
                traces.forget(capture)


def untraced(reason: str) -> tuple[ArmTrace, ...]:
    """Return the place of the traces of a run that takes none."""
    return (ArmTrace("all arms", reason),)


def _kept(name: str, path: Path, capture: Capture) -> ArmTrace:
    """Write the file of *capture*. Raise InputError if it cannot be written."""
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: {error.strerror or error}") from error
    write_atomically(path, capture.content, PRIVATE)
    return ArmTrace(
        name,
        file=f"{path.parent.name}/{path.name}",
        sha256=hashlib.sha256(capture.content).hexdigest(),
        bytes=len(capture.content),
        events=capture.events,
        seconds=capture.seconds,
        ended_by=capture.ended_by,
    )
