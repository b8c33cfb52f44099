"""The steps from a plan to a started engine: find, check, preflight, spawn."""

from contextlib import suppress
from pathlib import Path

from attrs import evolve

from temper_core.engine.installed import InstalledEngine
from temper_core.engine.stats import StatsClient
from temper_core.errors import EngineError, PlanError, TemperError
from temper_core.records.checks import Check
from temper_core.records.plans import Generation, LayerPlan
from temper_core.scheduler.change.plan_book import Candidate
from temper_core.scheduler.engine_process.access import EngineAccess
from temper_core.scheduler.engine_process.command_line import Launch, flags
from temper_core.scheduler.engine_process.engine_run import EngineRun, Limits
from temper_core.scheduler.engine_process.environment import EngineEnvironment
from temper_core.scheduler.engine_process.leftovers import remove_leftovers
from temper_core.scheduler.engine_process.process import spawn
from temper_core.scheduler.hint_map import HintMap
from temper_core.scheduler.host.kernel import KernelLog
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.preflight.preflight import run_preflight
from temper_core.scheduler.preflight.swap_memory import why_no_room
from temper_core.settings import Settings

LONGEST_STATS_PERIOD_S = 10.0


class Starter:
    """Finds the installed engine and starts it. Keeps the kernel's log open after a start.

    ``checks`` are those of the last preflight. ``gate_refusal`` is why this process cannot hold an
    engine back at a gate, once that is known.
    """

    def __init__(
        self,
        settings: Settings,
        roots: Roots,
        access: EngineAccess,
        hint_map: HintMap | None = None,
    ) -> None:
        self.engine: InstalledEngine | None = None
        self.checks: tuple[Check, ...] = ()
        self.gate_refusal = ""
        self._settings = settings
        self._roots = roots
        self._access = access
        self._hint_map = hint_map
        self._kernel_log: KernelLog | None = None
        self._made_run = False

    @property
    def engine_name(self) -> str:
        """The engine's name and version, the name alone before it was found."""
        return f"scx_layered {self.engine.version}" if self.engine else "scx_layered"

    def tidy(self) -> None:
        """Remove what a killed agent, or an engine that ended on a full disk, left behind."""
        remove_leftovers(self._settings, self._roots)

    def preflight(self, own_engine: int | None = None) -> tuple[Check, ...]:
        """Run the checks before a start. The engine is looked up anew.

        *own_engine* is the process id of the running engine, if any.
        """
        self.checks = run_preflight(
            self._roots, self._settings, find=self._find, own_engine=own_engine
        )
        return self.checks

    def swap_obstacle(self) -> str:
        """Return why the next engine cannot load beside the running one, empty if it can."""
        if not self._settings.scheduler.warm_swap:
            return "[scheduler] warm_swap is false"
        return self.gate_refusal or why_no_room(self._roots)

    def candidate(self, plan: LayerPlan) -> Candidate:
        """Render *plan* and check it against the engine's rules, if an engine is installed."""
        return self.checked(Candidate(plan, self._access.render(plan), is_checked=False))

    def checked(self, candidate: Candidate) -> Candidate:
        """Check *candidate* once against the rules of the installed engine."""
        if candidate.is_checked:
            return candidate
        try:
            engine = self.engine or self._find(self._settings.scheduler.engine)
        except TemperError:
            return candidate  # preflight reports that, and starts nothing without an engine
        cpus = len(candidate.plan.machine.cpus)
        try:
            self._access.check(candidate.config, engine.version, cpus)
        except PlanError as error:
            return evolve(candidate, is_checked=True, problem="; ".join(error.problems))
        return evolve(candidate, is_checked=True)

    def start(self, generation: Generation, now: float) -> EngineRun:
        """Spawn an engine for *generation* while none runs. Raise EngineError if that fails."""
        self.make_hints_ready(generation.plan)
        return self._spawn(generation, now, is_gated=False)

    def start_beside(self, generation: Generation, running: Generation, now: float) -> EngineRun:
        """Spawn an engine that loads while that of *running* schedules, and waits at a gate.

        Raises EngineError if it cannot be started, GateError if its gate cannot be made.
        """
        if generation.plan.is_steered and not self._is_hint_map_pinned():
            # An engine that finds no map makes a map itself. The running engine needs the hints of
            # the plan in force.
            self.make_hints_ready(running.plan if running.plan.is_steered else generation.plan)
        return self._spawn(generation, now, is_gated=True)

    def make_hints_ready(self, plan: LayerPlan) -> None:
        """Set the hints of a steered plan before its engine reads them.

        Raises EngineError if that fails.
        """
        if not plan.is_steered:
            return
        try:
            self._steering().ready(plan)
        except TemperError as error:
            raise EngineError(f"the hints for the plan cannot be set: {error}") from error

    def _steering(self) -> HintMap:
        if self._hint_map is None:
            raise EngineError("the plan is steered, and there is no map of hints")
        return self._hint_map

    def _is_hint_map_pinned(self) -> bool:
        try:
            return self._steering().path.exists()
        except OSError:
            return False

    def _spawn(self, generation: Generation, now: float, *, is_gated: bool) -> EngineRun:
        if self.engine is None:
            raise EngineError("no engine has been found")
        if self._kernel_log is None:
            self._kernel_log = KernelLog(self._roots.kmsg)
        self._kernel_log.forget()
        scheduler = self._settings.scheduler
        surroundings = EngineEnvironment(self._roots, self._kernel_log, now)
        self._made_run = self._made_run or not self._roots.run.exists()
        process = spawn(self._launch(generation, self.engine.path, is_gated=is_gated))
        period_s = min(self._settings.observe.period_s, LONGEST_STATS_PERIOD_S)
        stats = StatsClient(
            str(self._roots.stats_socket), scheduler.stats_timeout_s, period_s=period_s
        )
        limits = Limits(
            start_deadline_s=scheduler.start_deadline_s,
            stop_deadline_s=scheduler.stop_deadline_s,
            stats_silence_s=scheduler.stats_silence_s,
            sysrq=scheduler.sysrq,
        )
        return EngineRun(generation, process, stats, surroundings, limits)

    def close(self) -> None:
        """Close the kernel's log, and remove the runtime directory if this made it."""
        if self._kernel_log is not None:
            self._kernel_log.close()
            self._kernel_log = None
        if self._made_run:
            with suppress(OSError):  # it is not empty: another process uses it now
                self._roots.run.rmdir()

    def _find(self, name: str) -> InstalledEngine:
        self.engine = None
        self.engine = self._access.find(name)
        return self.engine

    def _launch(self, generation: Generation, binary: Path, *, is_gated: bool) -> Launch:
        scheduler = self._settings.scheduler
        hint_map = self._steering().path if generation.plan.is_steered else None
        return Launch(
            binary=binary,
            config=generation.config,
            run=self._roots.run,
            number=generation.number,
            watchdog_ms=scheduler.watchdog_ms,
            arguments=(*flags(scheduler, hint_map), *self._access.arguments),
            environment=self._access.environment,
            gated_file=self._roots.sched_ext / "state" if is_gated else None,
        )
