"""Steering in the agent: opens it, gives it the plan, and decides when it runs."""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import structlog
from attrs import evolve, frozen

from temper_core.errors import MachineError
from temper_core.records.executions import ExecutionNews
from temper_core.records.plans import Generation, LayerPlan
from temper_core.records.steering import SteeringState
from temper_core.scheduler.lifecycle import Scheduler
from temper_core.steering.engine_layers import NO_ENGINE, RunningEngine
from temper_core.steering.steerer import Steerer
from temper_core.steering.truth import Truths

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

NEWS_S = 0.2
"""Seconds between two checks for new or removed cgroups. A check reads one number."""
REST = 10
"""After a read of the pods, changes are ignored for this many times its duration."""
EXECS_S = 0.5
"""Least seconds between two reads of the executions that the kernel has noted."""
RETRY_S = 60.0


@frozen
class SteeredGeneration:
    """The plan that was decided for the layers of one generation."""

    generation: int
    plan: LayerPlan


class SteeringControl:
    """Steers while an engine with a steered plan runs. Implements the scheduler's ``HintMap``.

    Belongs to the agent's main thread. While steering cannot be opened the mode is static, with
    the reason in ``state``, and opening is tried again every minute. Without an engine no hint is
    read, so that threads are not walked. ``ready`` walks them before the next engine starts.
    """

    def __init__(self, open_steering: Callable[[], Steerer], path: Path) -> None:
        self._open = open_steering
        self._path = path
        self._steering: Steerer | None = None
        self._reason = "steering was not opened yet"
        self._retry_at = 0.0
        self._is_away = False
        self._decided: SteeredGeneration | None = None
        self._plan: LayerPlan | None = None
        self._layers: tuple[int, tuple[str, ...]] = (0, ())
        self._due = 0.0
        self._is_steering = False
        self._engine = NO_ENGINE
        self._events_seen = 0
        self._news_from = 0.0
        self._execs_seen = 0
        self._execs_from = 0.0
        self._hears_execs = False

    @property
    def can_steer(self) -> bool:
        """Whether a plan may be steered."""
        return self._steering is not None and not self._reason

    @property
    def state(self) -> SteeringState:
        """The counts of steering, its mode, and the reason if it is static."""
        state = self._steering.state if self._steering is not None else SteeringState()
        mode = "hints" if self.can_steer or self._is_steering else "static"
        return evolve(state, mode=mode, reason=self._reason or state.reason)

    @property
    def path(self) -> Path:
        """The path at which the map of hints is pinned for the engine."""
        return self._path

    def try_again(self, now: float) -> None:
        """Open steering, or repair it after a failure. It tries at most once a minute."""
        if self._is_away or self.can_steer or now < self._retry_at:
            return
        self._retry_at = now + RETRY_S
        before = self._reason
        try:
            if self._steering is None:
                self._steering = self._open()
            else:
                self._steering.mend()
        except MachineError as error:
            self._reason = str(error)
        else:
            self._reason = ""
        if self._reason != before:
            log.info("steering_chosen", mode=self.state.mode, reason=self._reason)

    def ready(self, plan: LayerPlan) -> None:
        """Pin the map, and write the hint of every thread by *plan*.

        Raises MachineError if that fails. Then plans are static until the next try.
        """
        if self._steering is None:
            raise MachineError(self._reason)
        try:
            self._steering.ready(plan)
        except MachineError as error:
            self._reason, self._retry_at = str(error), time.monotonic() + RETRY_S
            log.warning("steering_given_up", reason=self._reason)
            raise
        self._plan = plan

    def decided(self, plan: LayerPlan, generation: Generation | None) -> None:
        """Steer by *plan* for as long as *generation* is in force."""
        self._decided = (
            SteeredGeneration(generation.number, plan) if generation is not None else None
        )

    def plan_for(self, generation: Generation) -> LayerPlan:
        """Return the plan for the layers of *generation*: the last one decided, else its own."""
        decided = self._decided
        if decided is None or decided.generation != generation.number:
            return generation.plan
        return decided.plan

    def sees_news(self, now: float) -> bool:
        """Whether cgroups came or went since this last returned true, outside of a rest."""
        if not self._is_steering or self._steering is None or now < self._news_from:
            return False
        events = self._steering.cgroup_events
        has_news = events != self._events_seen
        self._events_seen = events
        if has_news:
            self._due = now
        return has_news

    def executions(self, now: float) -> ExecutionNews | None:
        """Return the executions of programs since the last call, None without any.

        There is also news if the kernel's notes begin or end, or some of them were overwritten.
        """
        if not self._is_steering or self._steering is None:
            return self._deaf_to_execs()
        count = self._steering.exec_count
        if not self._hears_execs:
            self._execs_seen, self._hears_execs = count, True
            return ExecutionNews(is_heard=True)
        if now < self._execs_from or count == self._execs_seen:
            return None
        self._execs_from = now + EXECS_S
        executions, seen = self._steering.executions(self._execs_seen)
        self._hears_execs = len(executions) == seen - self._execs_seen
        self._execs_seen = seen
        return ExecutionNews(tuple(executions), self._hears_execs)

    def rest(self, now: float, took_s: float) -> None:
        """Ignore changes for a while, after a read of the pods that took *took_s* seconds."""
        self._news_from = now + max(NEWS_S, REST * took_s)

    def turn(self, now: float, scheduler: Scheduler) -> float:
        """Steer if it is due. Return the most seconds until the next call."""
        self.try_again(now)
        generation = scheduler.generation
        plan = self.plan_for(generation) if generation is not None else None
        self._is_steering = plan is not None and plan.is_steered and self._steering is not None
        if generation is None or plan is None or self._steering is None or not plan.is_steered:
            if self._steering is not None:
                self._steering.release()  # no engine reads weights now, but the kernel would
            return math.inf
        running = self._running(generation, scheduler)
        if running != self._engine:
            self._engine, self._due = running, now
        if plan is not self._plan:
            self._plan, self._due = plan, now
            self._steering.apply(plan)
        if now >= self._due:
            self._due = now + self._steering.turn(now, running)
        return max(0.0, self._due - now)

    @property
    def look_in_s(self) -> float:
        """Seconds between two calls of ``has_news`` while nothing else is due."""
        return NEWS_S if self._is_steering else math.inf

    def has_news(self, now: float) -> bool:
        """Whether ``sees_news`` or ``executions`` would tell any now. Changes nothing."""
        if not self._is_steering or self._steering is None:
            return False
        has_cgroups = now >= self._news_from and self._steering.cgroup_events != self._events_seen
        return has_cgroups or (
            now >= self._execs_from and self._steering.exec_count != self._execs_seen
        )

    def truth(self) -> Truths | None:
        """Return the kernel's view of all threads, None without steering."""
        if not self._is_steering or self._steering is None:
            return None
        return self._steering.truth()

    def close(self) -> None:
        """Remove everything from the kernel."""
        if self._steering is not None:
            self._steering.close()
            self._steering, self._reason = None, "it has ended"

    def withdraw(self) -> None:
        """Remove everything from the kernel, and stay closed until ``come_back``."""
        self._is_away = True
        self.close()
        self._reason = "the host was restored"

    def come_back(self) -> None:
        """Open steering again if possible, before the next engine is decided on."""
        self._is_away, self._retry_at = False, 0.0
        self.try_again(time.monotonic())

    def _deaf_to_execs(self) -> ExecutionNews | None:
        had_heard, self._hears_execs = self._hears_execs, False
        return ExecutionNews() if had_heard else None

    def _running(self, generation: Generation, scheduler: Scheduler) -> RunningEngine:
        if self._layers[0] != generation.number:
            names = (layer["name"] for layer in json.loads(generation.config))
            self._layers = generation.number, tuple(names)
        return RunningEngine(scheduler.engine_pid or 0, self._layers[1], scheduler.engine_pids)
