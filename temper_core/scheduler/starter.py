"""Everything between a plan and a started engine: find, check, preflight, spawn."""

from contextlib import suppress
from pathlib import Path

from attrs import evolve

from temper_core.engine.stats import StatsClient
from temper_core.errors import EngineError, PlanError, TemperError
from temper_core.records.plans import Generation, LayerPlan
from temper_core.scheduler.checks import Check
from temper_core.scheduler.engine_access import EngineAccess, InstalledEngine
from temper_core.scheduler.engine_process import Launch, spawn
from temper_core.scheduler.engine_run import EngineRun, Limits, Surroundings
from temper_core.scheduler.kernel import KernelLog
from temper_core.scheduler.plan_book import Candidate
from temper_core.scheduler.preflight import run_preflight
from temper_core.scheduler.roots import Roots
from temper_core.settings import Settings

LONGEST_STATS_PERIOD_S = 10.0


class Starter:
    """Knows the installed engine and starts it; keeps the kernel's log open from then on."""

    def __init__(self, settings: Settings, roots: Roots, access: EngineAccess) -> None:
        self.engine: InstalledEngine | None = None
        self._settings = settings
        self._roots = roots
        self._access = access
        self._kernel_log: KernelLog | None = None
        self._made_run = False

    @property
    def engine_name(self) -> str:
        """The engine's name and version; the name alone before it was found."""
        return f"scx_layered {self.engine.version}" if self.engine else "scx_layered"

    def preflight(self) -> tuple[Check, ...]:
        """Look for all that a start needs; the engine is looked for anew."""
        return run_preflight(self._roots, self._settings, find=self._find)

    def candidate(self, plan: LayerPlan) -> Candidate:
        """Render *plan* and hold it against the engine's rules, if an engine is installed."""
        return self.checked(Candidate(plan, self._access.render(plan), is_checked=False))

    def checked(self, candidate: Candidate) -> Candidate:
        """Hold *candidate* against the rules of the installed engine, once."""
        if candidate.is_checked:
            return candidate
        try:
            engine = self.engine or self._find(self._settings.scheduler.engine)
        except TemperError:
            return candidate  # preflight will say so; nothing is started without an engine
        cpus = len(candidate.plan.machine.cpus)
        try:
            self._access.check(candidate.config, engine.version, cpus)
        except PlanError as error:
            return evolve(candidate, is_checked=True, problem="; ".join(error.problems))
        return evolve(candidate, is_checked=True)

    def start(self, generation: Generation, now: float) -> EngineRun:
        """Spawn an engine for *generation*; raise EngineError where that is impossible."""
        if self.engine is None:
            raise EngineError("no engine has been found")
        if self._kernel_log is None:
            self._kernel_log = KernelLog(self._roots.kmsg)
        self._kernel_log.forget()
        scheduler = self._settings.scheduler
        surroundings = Surroundings(self._roots, self._kernel_log, now)
        self._made_run = self._made_run or not self._roots.run.exists()
        process = spawn(self._launch(generation, self.engine.path))
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
        """Let go of the kernel's log, and of the runtime directory if nothing else made it."""
        if self._kernel_log is not None:
            self._kernel_log.close()
            self._kernel_log = None
        if self._made_run:
            with suppress(OSError):  # it is not empty: somebody else uses it now
                self._roots.run.rmdir()

    def _find(self, name: str) -> InstalledEngine:
        self.engine = None
        self.engine = self._access.find(name)
        return self.engine

    def _launch(self, generation: Generation, binary: Path) -> Launch:
        scheduler = self._settings.scheduler
        return Launch(
            binary=binary,
            config=generation.config,
            run=self._roots.run,
            number=generation.number,
            watchdog_ms=scheduler.watchdog_ms,
            arguments=("--max-exec-us", str(scheduler.max_exec_us), *self._access.arguments),
            environment=self._access.environment,
        )
