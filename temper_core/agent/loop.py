"""The agent's loop over pods, profiles, plan, scheduler, steering, observation and lint."""

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import structlog
from attrs import evolve, field, frozen

from temper_core.agent.agent_state import with_agent_state
from temper_core.agent.change_sources import ChangeSource
from temper_core.agent.own_cpus import lent_cpus
from temper_core.agent.parts import Parts
from temper_core.agent.waker import LoopWaker
from temper_core.agent.watchdog import GRACE_S
from temper_core.records.plans import LayerPlan
from temper_core.records.profiles import LoadedProfile
from temper_core.records.snapshots import Snapshot

FIRST_WINDOW_S = 1.0
"""Seconds of the first window after the baseline: short, so that data is soon available."""

LONGEST_WAIT_S = GRACE_S / 2
"""Seconds of the longest sleep. It is well below ``published.STALE_S``, so that an idle loop still
counts as alive, and below ``GRACE_S``, so that SIGUSR1 from outside does not end it."""

NEWS_REST_S = 2.0
"""Least seconds between two reads of pods and profiles, even if they change all the time."""

SOON_S = 0.02
"""A step of the scheduler that is due within this time is taken with whatever else is due. Steps
and walks of steering are due at the same time, and would take turns a millisecond apart."""

BRAKE_REST_S = 0.2
"""Least seconds between two reads of the file that requests safe mode, if it comes and goes."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class _Basis:
    """The input of a decision besides the pods: engine in force, steering, profiles on trial."""

    generation: int
    can_steer: bool
    trials: Mapping[str, LoadedProfile] = field(factory=dict)


class Agent:
    """The agent. ``run`` must be called from the main thread, since it spawns the engine."""

    def __init__(self, parts: Parts, wake: LoopWaker) -> None:
        self._parts = parts
        self._wake = wake
        self._brake = ChangeSource(wake, parts.requests, BRAKE_REST_S)
        rest_s = min(NEWS_REST_S, parts.settings.pods.poll_s)
        self._pod_news = ChangeSource(wake, parts.pods, rest_s)
        self._profile_news = ChangeSource(wake, parts.profiles, rest_s)
        self._is_stopping = False
        self._plan: LayerPlan | None = None
        self._basis = _Basis(0, can_steer=False)
        self._again_at: float | None = None
        self._defects: dict[str, str] = {}
        parts.published.show_failures(self._defects)
        self._pods_due = self._step_due = 0.0
        self._look_due = 0.0
        self._next_window_s = FIRST_WINDOW_S

    def stop(self) -> None:
        """Ask the loop to end. May be called from a signal handler."""
        self._is_stopping = True
        self._wake.set()

    def run(self) -> None:
        """Serve and loop until ``stop``. Then end the engine and close all parts.

        Raises MachineError if another agent runs on this node.
        """
        with self._parts.lock():
            self._run()

    def _run(self) -> None:
        parts = self._parts
        try:
            if parts.watchdog is not None:
                parts.watchdog.begin()
            parts.server.bind()
            if parts.events is not None:
                parts.events.open()
            parts.instruments.open()
            self._beat()
            if parts.events is not None:
                parts.events.opened(parts.instruments.defects)
            parts.server.start()
            parts.manager.ready()
            address = parts.server.address
            log.info("agent_started", address=str(address) if address else "local socket only")
            self._restore()
            parts.steering.try_again(time.monotonic())
            self._turn(time.monotonic())
            # These objects live as long as the agent, so that the collector need not scan them.
            gc.collect()
            gc.freeze()
            while not self._is_stopping:
                wait_s = self._turn(time.monotonic())
                self._beat(wait_s)
                if self._sleep(wait_s):
                    self._step_due = 0.0
        finally:
            self._close()
        log.info("agent_stopped")

    def _sleep(self, wait_s: float) -> bool:
        """Sleep until something is due or happens. Return whether the waker ended the sleep.

        The kernel side of steering wakes no thread, so its counts are looked at meanwhile.
        """
        steering, end = self._parts.steering, time.monotonic() + wait_s
        while True:
            left_s = max(0.0, end - time.monotonic())
            if self._wake.wait(min(left_s, steering.look_in_s)):
                return True
            now = time.monotonic()
            if now >= end or steering.has_news(now):
                return False

    def _beat(self, allowed_s: float = 0.0) -> None:
        """Show both watchdogs that the loop turns. It may now take *allowed_s* seconds longer."""
        if self._parts.watchdog is not None:
            self._parts.watchdog.turned(allowed_s)
        self._parts.manager.alive()

    def _turn(self, now: float) -> float:
        """Do what is due. Return the seconds until something is due again."""
        parts = self._parts
        parts.published.turned()
        self._beat()
        self._restore()
        with parts.observer.cost.part("decide"), self._surviving("executions"):
            self._hear_executions(now)
        with parts.observer.cost.part("decide"), self._surviving("plugins"):
            self._take_back_plugins(now)
        if self._has_news_of_pods(now):
            with parts.observer.cost.part("decide"), self._surviving("decide"):
                self._follow_pods(now)
            ended = time.monotonic()
            self._pods_due = self._next_pods(ended)
            parts.steering.rest(ended, took_s=ended - now)
            self._step_due = 0.0
        self._look_due = parts.observer.hurried(self._look_due)
        is_look = now >= self._look_due
        if self._brake.taken():
            parts.scheduler.look_for_requests()
            self._step_due = now
        # A step that is due before the next look, or very soon, is taken now, to save a wake-up.
        if now >= self._step_due - (parts.observer.period_s if is_look else SOON_S):
            with parts.observer.cost.part("schedule"):
                wanted_in_s = parts.scheduler.step(time.monotonic())
            self._step_due = time.monotonic() + wanted_in_s
            self._restore()
        steer_in_s = LONGEST_WAIT_S
        with parts.observer.cost.part("steer"), self._surviving("steer"):
            steer_in_s = parts.steering.turn(time.monotonic(), parts.scheduler)
        if is_look:
            with self._surviving("observe"):
                self._look()
            self._look_due = now + min(parts.observer.period_s, self._next_window_s)
            self._next_window_s = parts.observer.period_s
        self._record_events()
        due = min(self._step_due, self._pods_due, self._look_due, parts.trials.due_at())
        return min(max(0.0, due - time.monotonic()), steer_in_s, LONGEST_WAIT_S)

    def _record_events(self) -> None:
        parts = self._parts
        if parts.events is not None:
            with self._surviving("events"):
                parts.events.turn(self._plan, parts.published.snapshot())

    def _restore(self) -> None:
        if self._parts.restoration is not None:
            self._parts.restoration.turn(self._parts.scheduler.engine_pids)

    def _next_pods(self, now: float) -> float:
        """Return when to read the pods again if no change of them is reported before."""
        parts, poll_s = self._parts, self._parts.settings.pods.poll_s
        if parts.profiles.is_due:
            return now
        if self._is_open:
            return now + poll_s
        rest_s = parts.pods.rest_s(poll_s)
        due = now + (rest_s if self._hears_all else min(rest_s, poll_s))
        return due if self._again_at is None else min(due, max(now + poll_s, self._again_at))

    @property
    def _hears_all(self) -> bool:
        """Whether pods and profiles report every change. Otherwise they have to be polled."""
        sources = (self._pod_news, self._profile_news)
        return self._parts.profiles.is_heard and all(source.is_listening for source in sources)

    def _take_back_plugins(self, now: float) -> None:
        """Use the profiles and detectors of plugins that hung at the start and answer now."""
        parts = self._parts
        if parts.host.retry():
            parts.profiles.ask_again()
            parts.decider.ask_again()
            self._pods_due = now

    def _hear_executions(self, now: float) -> None:
        """Pass the processes that have executed another program to the pod source."""
        news = self._parts.steering.executions(now)
        if news is not None:
            again_in_s = self._parts.pods.executed(news)
            self._pods_due = min(self._pods_due, now + again_in_s)

    def _has_news_of_pods(self, now: float) -> bool:
        """Whether to read pods and profiles: after a change, with a new basis, or when it is due.

        ``taken`` is called on both sources each time, since the call makes them wait for changes.
        """
        changes = [source.taken() for source in (self._pod_news, self._profile_news)]
        is_due = now >= self._pods_due or self._basis != self._basis_now()
        is_due |= self._parts.profiles.is_due
        return self._parts.steering.sees_news(now) or is_due or any(changes)

    @contextmanager
    def _surviving(self, part: str) -> Iterator[None]:
        """Keep the node's plan in force when a part of the loop raises.

        The scheduler is not guarded: if it fails, the agent ends, and the engine with it.
        """
        try:
            yield
        except Exception as error:  # any error: a bug here must not end enforcement
            if self._defects.get(part) != repr(error):
                log.exception("agent_part_failed", part=part)
            self._defects[part] = repr(error)
        else:
            self._defects.pop(part, None)

    def _follow_pods(self, now: float) -> None:
        parts, scheduler = self._parts, self._parts.scheduler
        has_other_profiles, has_other_pods = parts.profiles.look(), parts.pods.look()
        basis, generation = self._basis_now(), scheduler.generation
        if has_other_profiles or basis.trials != self._basis.trials:
            catalogue = parts.profiles.catalogue
            on_trial = evolve(catalogue, trials=basis.trials) if basis.trials else catalogue
            parts.decider.follow(on_trial)
        if not has_other_pods and not self._must_decide(now, basis):
            return
        self._basis = basis
        decision = parts.decider.decide(
            parts.pods.pods,
            generation.plan if generation is not None else None,
            steered=basis.can_steer,
            can_swap=not scheduler.swap_obstacle,
            now=now,
        )
        self._tell_notes(decision.by_now)
        self._plan, self._again_at = decision.by_now, decision.again_at
        parts.steering.decided(decision.by_now, generation)
        parts.published.show_plan(decision.by_now)
        scheduler.submit(decision.wanted)

    def _must_decide(self, now: float, basis: _Basis) -> bool:
        """Whether a new decision is needed although the pods are the same."""
        is_due = self._again_at is not None and now >= self._again_at
        return is_due or self._is_open or basis != self._basis

    @property
    def _is_open(self) -> bool:
        """Whether the last decision on these pods failed or is unfinished."""
        failed = self._plan is None or "decide" in self._defects
        return failed or self._parts.decider.is_unfinished

    def _basis_now(self) -> _Basis:
        generation = self._parts.scheduler.generation
        number = generation.number if generation is not None else 0
        return _Basis(number, self._parts.steering.can_steer, self._parts.trials.profiles())

    def _tell_notes(self, plan: LayerPlan) -> None:
        old_notes = set(self._plan.notes) if self._plan is not None else set()
        for note in plan.notes:
            if note not in old_notes:
                log.info("plan_noted", code=note.code, subject=note.subject, message=note.message)

    def _look(self) -> None:
        parts, scheduler = self._parts, self._parts.scheduler
        generation = scheduler.generation
        with parts.observer.cost.part("steer"):
            truth = parts.steering.truth()
        parts.observer.cost.series = parts.published.series
        snapshot = parts.observer.tick(
            plan=self._plan if generation is None else parts.steering.plan_for(generation),
            status=scheduler.status,
            stats=scheduler.stats,
            engine_pid=scheduler.engine_pid,
            plugins=parts.host.states(),
            profile_failures=parts.profiles.catalogue.first_failures,
            truth=truth,
        )
        with self._surviving("own CPUs"):
            self._keep_off_lent_cpus(snapshot)
        # Invariants read the sections as well.
        snapshot = parts.instruments.with_sections(with_agent_state(snapshot, parts, self._defects))
        with parts.observer.cost.part("lint"):
            violations = parts.linter.judge(snapshot)
            linted = evolve(snapshot, violations=violations, invariants=parts.linter.names)
        with parts.observer.cost.part("publish"):
            parts.published.show_snapshot(linted, truth)
        parts.instruments.tell(linted)

    def _keep_off_lent_cpus(self, snapshot: Snapshot) -> None:
        scheduler = self._parts.scheduler
        layers = scheduler.generation.plan.layers if scheduler.generation is not None else ()
        lent = lent_cpus(layers, snapshot.layers)
        self._parts.own_cpus.follow(lent, scheduler.engine_pid, scheduler.engine_pids)

    def _close(self) -> None:
        """Close all parts. The engine is first, so that the stock scheduler runs in any case."""
        parts = self._parts
        parts.manager.stopping()
        with ExitStack() as ending:
            ending.callback(parts.manager.close)
            if parts.watchdog is not None:
                ending.callback(parts.watchdog.end)
            watchers = (parts.observer.close, parts.instruments.close)
            if parts.events is not None:
                ending.callback(parts.events.close)
            for close in (*watchers, parts.pods.close, parts.server.stop):
                ending.callback(close)
            if parts.events is not None:
                ending.callback(parts.events.stop)
            ending.callback(parts.steering.close)
            ending.callback(self._beat)
            ending.callback(parts.scheduler.close)
            self._beat(parts.settings.scheduler.stop_deadline_s)
