"""Steering in the agent: whether there is any, by which plan, and how often."""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import structlog
from attrs import evolve, frozen

from temper_core.errors import MachineError
from temper_core.records.plans import Generation, LayerPlan
from temper_core.records.steering import SteeringState
from temper_core.scheduler.lifecycle import Scheduler
from temper_core.steering.engine_layers import RunningEngine
from temper_core.steering.steerer import Steerer
from temper_core.steering.truth import Truths

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

NEWS_S = 0.2
"""How soon cgroups that came or went are noticed, at the price of reading one number."""
REST = 10
"""After a look at the pods so many times its length is not looked again, news or not."""
RETRY_S = 60.0


@frozen
class SteeredGeneration:
    """The plan that was decided for the layers of one generation."""

    generation: int
    plan: LayerPlan


class SteeringControl:
    """Steers while an engine with a steered plan runs. Implements the scheduler's ``HintMap``.

    Belongs to the agent's main thread. Where steering is not to be had it is static, says why in
    ``state``, and tries again every minute. Without an engine nobody reads hints, so that there
    are no walks. ``ready`` makes up for them before the next one starts.
    """

    def __init__(self, open_steering: Callable[[], Steerer], path: Path) -> None:
        self._open = open_steering
        self._path = path
        self._steering: Steerer | None = None
        self._reason = "it has not been tried yet"
        self._retry_at = 0.0
        self._is_away = False
        self._decided: SteeredGeneration | None = None
        self._plan: LayerPlan | None = None
        self._layers: tuple[int, tuple[str, ...]] = (0, ())
        self._due = 0.0
        self._is_steering = False
        self._events_seen = 0
        self._news_from = 0.0

    @property
    def can_steer(self) -> bool:
        """Whether a steered plan may be asked for."""
        return self._steering is not None and not self._reason

    @property
    def state(self) -> SteeringState:
        """What steering did, or why there is none."""
        state = self._steering.state if self._steering is not None else SteeringState()
        mode = "hints" if self.can_steer or self._is_steering else "static"
        return evolve(state, mode=mode, reason=self._reason or state.reason)

    @property
    def path(self) -> Path:
        """Where the map of hints is pinned for the engine."""
        return self._path

    def try_again(self, now: float) -> None:
        """Open steering, or mend what kept it from being ready. Once a minute at most."""
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
        """Pin the map, and give every thread the hint that *plan* wants.

        Raises MachineError where that is impossible. From then on plans are static for a while.
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
        """Return the plan that fits the layers of *generation*: its own, or what came after."""
        decided = self._decided
        if decided is None or decided.generation != generation.number:
            return generation.plan
        return decided.plan

    def sees_news(self, now: float) -> bool:
        """Whether cgroups came or went since this last said so, and it is time to say it."""
        if not self._is_steering or self._steering is None or now < self._news_from:
            return False
        events = self._steering.cgroup_events
        has_news = events != self._events_seen
        self._events_seen = events
        if has_news:
            self._due = now
        return has_news

    def rest(self, now: float, took_s: float) -> None:
        """See no news for a while: looking at the pods has just taken *took_s* seconds."""
        self._news_from = now + max(NEWS_S, REST * took_s)

    def turn(self, now: float, scheduler: Scheduler) -> float:
        """Steer if it is time to. Return in how many seconds at the latest it will be again."""
        self.try_again(now)
        generation = scheduler.generation
        plan = self.plan_for(generation) if generation is not None else None
        self._is_steering = plan is not None and plan.is_steered and self._steering is not None
        if generation is None or plan is None or self._steering is None or not plan.is_steered:
            return math.inf
        if plan is not self._plan:
            self._plan, self._due = plan, now
            self._steering.apply(plan)
        if now >= self._due:
            self._due = now + self._steering.turn(now, self._running(generation, scheduler))
        return min(NEWS_S, max(0.0, self._due - now))

    def truth(self) -> Truths | None:
        """Return what the kernel knows of all threads; None while nobody steers."""
        if not self._is_steering or self._steering is None:
            return None
        return self._steering.truth()

    def close(self) -> None:
        """Leave nothing in the kernel."""
        if self._steering is not None:
            self._steering.close()
            self._steering, self._reason = None, "it has ended"

    def withdraw(self) -> None:
        """Leave nothing in the kernel, and stay away until ``come_back``."""
        self._is_away = True
        self.close()
        self._reason = "the host was restored"

    def come_back(self) -> None:
        """Steer again, where that is possible, before the next engine is decided on."""
        self._is_away, self._retry_at = False, 0.0
        self.try_again(time.monotonic())

    def _running(self, generation: Generation, scheduler: Scheduler) -> RunningEngine:
        if self._layers[0] != generation.number:
            names = (layer["name"] for layer in json.loads(generation.config))
            self._layers = generation.number, tuple(names)
        return RunningEngine(scheduler.engine_pid or 0, self._layers[1], scheduler.engine_pids)
