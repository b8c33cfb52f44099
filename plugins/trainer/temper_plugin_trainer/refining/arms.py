"""Puts the arms of a climb in force one after the other, and measures each."""

import math
import time
from collections.abc import Callable
from typing import Any, NoReturn

from attrs import define, field, frozen

from temper_core import InputError, MachineError
from temper_core.console import is_interrupted
from temper_core.observed import number
from temper_plugin_trainer.refining.arm_readings import OthersWait
from temper_plugin_trainer.refining.benchmark_runs import (
    Benchmark,
    BenchmarkError,
    GuardError,
    RunInterruptedError,
)
from temper_plugin_trainer.refining.climb import Reading, Verdict, Visit
from temper_plugin_trainer.refining.guardian import STOCK, TRIAL, Guardian
from temper_plugin_trainer.refining.guards import Guards
from temper_plugin_trainer.refining.trial_door import (
    ENGINE_EJECTED,
    ENGINE_STARTED,
    OBSERVING,
    Door,
)
from temper_plugin_trainer.refining.variants import Variant

POLL_S = 0.25
ABORT_POLL_S = 1.0
WINDOW_POLL_S = 10.0
MARGIN_S = 30.0
MINUTE_S = 60.0
LONGEST_TRIAL_S = 3_600.0


@frozen
class Pace:
    """Times of an arm in seconds, and the engines that a run may use."""

    warm_up_s: float = 2.0
    in_force_within_s: float = 1_200.0
    engines: int = 20


class NotInForceError(Exception):
    """An arm did not get in force in time, or would need too many engines."""


@define
class Arms:
    """The arms of one run on one agent.

    Attributes:
        first_event: The last event before the run.
        engines_before: Engines that the run used before it was interrupted.
        minutes: After this time no block begins, except those of the confirmation.
        request_millis: The pod's CPU request, None if it is unknown.
        waiting: Called with what an arm waits for.
        opens_in: Returns the seconds until the next measurement may begin.
        aborted: Returns why the run has to end. Empty while it may go on. It must not wait.

    """

    door: Door
    benchmark: Benchmark
    guards: Guards
    guardian: Guardian
    pace: Pace
    first_event: int
    engines_before: int = 0
    minutes: float | None = None
    request_millis: int | None = None
    waiting: Callable[[str], None] = lambda _: None
    opens_in: Callable[[], float] = lambda: 0.0
    aborted: Callable[[], str] = lambda: ""
    unit: str = field(default="", init=False)
    better: str = field(default="", init=False)
    _begun: float = field(factory=time.monotonic, init=False)
    _ejected_at: int = field(default=0, init=False)
    _current: Variant | None = field(default=None, init=False)
    _trial: str = field(default="", init=False)
    _until: float = field(default=0.0, init=False)
    _others: OthersWait = field(factory=lambda: OthersWait(""), init=False)

    def answer(self, visit: Visit, begins: Callable[[], None] = lambda: None) -> Reading:
        """Measure *visit*. Raises RunInterruptedError, and BenchmarkError for the baseline.

        *begins* is called when the arm is in force, right before the first run.
        """
        if not visit.is_confirmation and self._is_out_of_time:
            why = f"--minutes {self.minutes:g} have passed"
            return Reading(None, why, Verdict.OUT_OF_TIME)
        self._wait_for_window()
        try:
            self._put_in_force(visit)
            self._others = OthersWait(self.door.look().at)
            begins()
            values = [self._measured(visit) for _ in range(visit.runs)]
        except NotInForceError as error:
            return Reading(None, str(error), Verdict.NOT_IN_FORCE)
        except GuardError as error:
            self.close()
            return Reading(None, str(error), Verdict.ENDED)
        except BenchmarkError as error:
            self.close()
            if not visit.trial:
                raise
            return Reading(None, str(error), Verdict.ENDED)
        mean = math.exp(sum(map(math.log, values)) / len(values))
        return Reading(mean, others_wait=self._others.mean)

    def close(self) -> None:
        """End the trial in force, or the stock scheduler, if there is one."""
        if self._trial:
            self.door.release(self._trial)
            self.guardian.tell(TRIAL)
        if self._current is not None and self._current.is_stock:
            self.door.withdraw_stock(self._current.table["id"])
            self.guardian.tell(STOCK)
        self._trial, self._current = "", None

    @property
    def engines_used(self) -> int:
        """How many engines the agent has started since the run began."""
        return self.engines_before + len(self.door.events_after(self.first_event, ENGINE_STARTED))

    def _wait_for_window(self) -> None:
        """Wait until measurements may begin. No arm is in force meanwhile."""
        while (left_s := self.opens_in()) > 0.0:
            self.close()
            self.waiting(f"the window opens in {left_s / MINUTE_S:.0f} minutes")
            self.wait(min(left_s, WINDOW_POLL_S))

    @property
    def _is_stock(self) -> bool:
        return self._current is not None and self._current.is_stock

    def _put_in_force(self, visit: Visit) -> None:
        needed_s = visit.runs * self.benchmark.timeout_s + MARGIN_S
        is_there = self._current is not None and self._current.key == visit.variant.key
        if is_there and time.monotonic() + needed_s < self._until:
            return
        self._require_engines(visit.variant)
        self.close()
        seconds = needed_s + self.pace.warm_up_s + self.pace.in_force_within_s
        self._begin(visit.variant, min(LONGEST_TRIAL_S, seconds))
        self._wait_until_in_force(visit.variant)
        self.wait(self.pace.warm_up_s)

    @property
    def _is_out_of_time(self) -> bool:
        passed_s = time.monotonic() - self._begun
        return self.minutes is not None and passed_s > MINUTE_S * self.minutes

    def _require_engines(self, variant: Variant) -> None:
        before = self._current
        if before is None or before.layer_needs == variant.layer_needs:
            return
        if self.guards.mode != OBSERVING and self.engines_used >= self.pace.engines:
            raise NotInForceError(f"it needs another engine, and {self.pace.engines} were used")

    def _begin(self, variant: Variant, seconds: float) -> None:
        if variant.is_stock:
            # Noted first: a request that is not withdrawn would last until the agent ends.
            self.guardian.tell(STOCK, variant.table["id"])
            self._current, self._until = variant, math.inf
            self.door.request_stock(variant.table["id"])
            return
        try:
            self._trial = self.door.begin(variant.text, seconds)
        except InputError as error:
            raise InputError(f"{variant.change}: {error}") from error
        self.guardian.tell(TRIAL, self._trial)
        self._current, self._until = variant, time.monotonic() + seconds

    def _wait_until_in_force(self, variant: Variant) -> None:
        ends_at = time.monotonic() + self.pace.in_force_within_s
        while why := self._obstacle(variant):
            self.waiting(why)
            if time.monotonic() > ends_at:
                self._give_up(why)
            self.wait(POLL_S)

    def _obstacle(self, variant: Variant) -> str:
        if variant.is_stock:
            why = self.door.stock_obstacle()
        else:
            sizes = variant.exclusive_cores(self.request_millis)
            why = self.door.obstacle(self._trial, variant.table["id"], sizes)
        return why or self._last_observation(self.guards.wanted(is_stock=variant.is_stock))

    def _last_observation(self, wanted: str) -> str:
        """Return what it is of, if not of *wanted*. It is seconds old, and the guards judge it."""
        mode = self.door.look().mode
        return "" if mode == wanted else f"the last observation is of {mode}"

    def _give_up(self, why: str) -> NoReturn:
        """Raise NotInForceError, or MachineError if the agent has changed its mode."""
        self.close()
        look = self.door.look()
        if look.mode != self.guards.mode:
            raise MachineError(
                f"the agent is in {look.mode} ({look.why}), no longer in {self.guards.mode}; "
                "the same command continues"
            )
        raise NotInForceError(f"not in force within {self.pace.in_force_within_s:g} s: {why}")

    def wait(self, seconds: float) -> None:
        """Wait. Raise RunInterruptedError if the run has to end meanwhile."""
        ends_at = time.monotonic() + seconds
        while True:
            require_wanted(self.aborted)
            left_s = ends_at - time.monotonic()
            if is_interrupted(min(left_s, ABORT_POLL_S)):
                raise RunInterruptedError("interrupted")
            if left_s <= ABORT_POLL_S:
                return

    def _measured(self, visit: Visit) -> float:
        is_baseline = not visit.trial
        result = self.benchmark.run(lambda: self._looked(is_baseline=is_baseline), self.guardian)
        if why := self._looked(is_baseline=is_baseline):
            raise GuardError(why)
        if self.better and (result.better, result.unit) != (self.better, self.unit):
            raise InputError("--benchmark: unit or better differs from that of its first run")
        self.unit, self.better = result.unit, result.better
        return result.value

    def _looked(self, *, is_baseline: bool) -> str:
        """Look at the node once. Return why the trial ends, empty if it may go on."""
        require_wanted(self.aborted)
        look = self.door.look()
        self._others.add(look)
        ejections = self.door.events_after(self._ejected_at or self.first_event, ENGINE_EJECTED)
        if ejections:
            self._ejected_at = int(number(ejections[-1], "number") or 0)
            return "the engine was ejected"
        if is_baseline:
            self.guards.learn(look)
        arm = self._current.key if self._current is not None else ""
        return self.guards.judged(look, arm, is_stock=self._is_stock)


def require_wanted(aborted: Callable[[], str]) -> None:
    """Raise RunInterruptedError if *aborted* says why the run has to end."""
    if why := aborted():
        raise RunInterruptedError(why)


def recorded(visit: Visit, reading: Reading, arms: Arms) -> dict[str, Any]:
    """Return the journal's line of an answer, with what the guards know by then."""
    row: dict[str, Any] = {"trial": visit.trial, "block": visit.block, "arm": visit.variant.key}
    row["change"] = visit.variant.change
    if reading.value is None:
        row |= {"why": reading.why, "verdict": str(reading.verdict)}
    else:
        row |= {"value": reading.value, "unit": arms.unit, "better": arms.better}
        if reading.others_wait is not None:
            row["others_wait"] = reading.others_wait
    if not visit.trial:
        row |= {"violations": sorted(arms.guards.known), "waits": arms.guards.most_waits}
    return {**row, "at": round(time.time(), 1), "engines": arms.engines_used}
