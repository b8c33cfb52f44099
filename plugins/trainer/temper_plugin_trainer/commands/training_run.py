"""One run of ``temper train run``: the climb, its progress, and its record."""

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import asdict, define, evolve

from temper_core import TemperError
from temper_core.console import (
    EXIT_FINDINGS,
    Progress,
)
from temper_plugin_trainer.commands.profile_origin import Origin
from temper_plugin_trainer.commands.run_progress import RunProgress, say
from temper_plugin_trainer.commands.run_reporter import RunReporter
from temper_plugin_trainer.refining.arm_traces import NOT_ASKED, ArmTrace, ArmTraces, untraced
from temper_plugin_trainer.refining.arms import Arms, Pace, require_wanted
from temper_plugin_trainer.refining.benchmark import BETTER, Asked, Measured
from temper_plugin_trainer.refining.benchmark_runs import Benchmark
from temper_plugin_trainer.refining.climb import Outcome, Plan
from temper_plugin_trainer.refining.climb_plot import climb_plot
from temper_plugin_trainer.refining.guardian import Guardian
from temper_plugin_trainer.refining.guards import Guards
from temper_plugin_trainer.refining.journal import Journal
from temper_plugin_trainer.refining.node_facts import NodeFacts
from temper_plugin_trainer.refining.outcome_result import result_of
from temper_plugin_trainer.refining.report import (
    JOURNAL,
    PLOT,
    PROFILE,
    REPORT,
    RESULT,
    Setting,
    report,
    verdict_of,
)
from temper_plugin_trainer.refining.session import Session, write_atomically
from temper_plugin_trainer.refining.trained_profile import trained_profile
from temper_plugin_trainer.refining.trial_door import Door, Look
from temper_plugin_trainer.refining.variants import Variant, started, stock, tiers_only
from temper_plugin_trainer.refining.window import Window
from temper_plugin_trainer.results.run_report import LONGEST_TEXT, MOST_PODS, RunReport

SCHEMA_VERSION = 1


@define
class TrainingRun:
    """One call of the command.

    Attributes:
        look: The last observation before the run.
        request: The pod's CPU request in thousandths of a CPU, None if it is unknown.
        other_starts: First candidates that are tested before the profile.
        show: Called with the verdict, the path of the report, and the profile if one is better.
        aborted: Returns why the run has to end. Empty while it may go on.

    """

    door: Door
    look: Look
    node: NodeFacts
    origin: Origin
    directory: Path
    guardian: Guardian
    request: int | None
    options: dict[str, Any]
    show: Callable[[str, Path, str], None]
    other_starts: tuple[Variant, ...] = ()
    aborted: Callable[[], str] = lambda: ""

    def run(self) -> None:
        """Climb, write the record, and exit with the verdict."""
        options = self.options
        asked = Asked(options["metric"], options["better"] or "")
        benchmark = Benchmark(options["benchmark"], asked, options["timeout"])
        # Before anything is changed: a benchmark that cannot be read is one error.
        first = benchmark.run(self._unwatched, self.guardian)
        plan = self._plan(first)
        journal = Journal(self.directory / JOURNAL)
        journal.open(self._header(plan, first))
        try:
            self._release_former(journal, plan)
            self._climb(plan, journal, benchmark, first)
        finally:
            journal.close()

    def _unwatched(self) -> str:
        """Look at nothing but whether the run is aborted."""
        require_wanted(self.aborted)
        return ""

    def _opens_in(self) -> float:
        """Return the seconds until the window is open, by the local time."""
        window: Window | None = self.options["window"]
        return window.opens_in(dt.datetime.now().astimezone()) if window else 0.0

    def _plan(self, first: Measured) -> Plan:
        return Plan(
            baseline=tiers_only(self.origin.table),
            start=started(self.origin.table),
            is_lower_better=first.better == BETTER[0],
            other_starts=self.other_starts,
            trials=self.options["trials"],
            blocks=self.options["blocks"],
            seed=self.options["seed"],
            request_millis=self.request,
            engine_runs=self.options["engine_runs"],
            stock=stock(self.origin.table),
            stock_blocks=self.options["stock_blocks"],
        )

    def _header(self, plan: Plan, first: Measured) -> dict[str, Any]:
        given = (
            *("benchmark", "metric", "trials", "blocks", "seed"),
            *("engine_runs", "warm_up", "stock_blocks"),
        )
        return {
            "schema_version": SCHEMA_VERSION,
            "pods": list(self.door.pods),
            **{key: self.options[key] for key in given},
            "unit": first.unit,
            "better": first.better,
            "cpu_request_millis": self.request,
            "mode": self.look.mode,
            "engine": self.look.engine,
            "machine": self.node.machine,
            "kernel": self.node.kernel,
            "profile": hashlib.sha256(plan.start.text.encode()).hexdigest(),
            **(
                {"other_starts": [each.key for each in plan.other_starts]}
                if plan.other_starts
                else {}
            ),
        }

    def _release_former(self, journal: Journal, plan: Plan) -> None:
        """End what a killed run of the same journal left, if its guardian died too."""
        profile_id = plan.start.table["id"]
        if journal.is_resumed and plan.stock_blocks:
            self.door.withdraw_stock(profile_id)
        for row in self.door.standing() if journal.is_resumed else ():
            if row.get("profile") == profile_id:
                self.door.release(str(row.get("id")))

    def _climb(self, plan: Plan, journal: Journal, benchmark: Benchmark, first: Measured) -> None:
        reporter = RunReporter(self.door, self._first_report(), say)
        with reporter.reporting():
            self._climb_reported(plan, journal, benchmark, first, reporter)

    def _first_report(self) -> RunReport:
        options = self.options
        return RunReport(
            workload=self.directory.name,
            profile=str(self.origin.table["id"]),
            pods=self.door.pods[:MOST_PODS],
            command=options["benchmark"][:LONGEST_TEXT],
            metric=options["metric"][:LONGEST_TEXT],
            trials=options["trials"],
        )

    def _climb_reported(
        self,
        plan: Plan,
        journal: Journal,
        benchmark: Benchmark,
        first: Measured,
        reporter: RunReporter,
    ) -> None:
        options = self.options
        progress = Progress("Ctrl-C ends it, the same command continues")
        arms = Arms(
            door=self.door,
            benchmark=benchmark,
            guards=Guards(self.look.mode, options["more_waits"]),
            guardian=self.guardian,
            pace=Pace(options["warm_up"], options["in_force_within"], options["engines"]),
            first_event=self.door.last_event(),
            minutes=options["minutes"],
            request_millis=self.request,
            waiting=lambda why: shown.wait(why),  # noqa: PLW0108 - it is made of the arms
            opens_in=self._opens_in,
            aborted=lambda: self.aborted() or reporter.reason(),
        )
        if journal.left:
            say(f"continuing after {journal.left} measurements")
        shown = RunProgress(plan, arms, journal, progress, reporter)
        session = Session(plan, journal, arms, shown.visit, shown.trial)
        outcome = session.run()
        reporter.update(phase="the traces", arm="", waiting="", left_s=None)
        self._record(outcome, session, first, self._traces(outcome, arms, progress))

    def _traces(self, outcome: Outcome, arms: Arms, progress: Progress) -> tuple[ArmTrace, ...]:
        if self.options["no_trace"]:
            return untraced(NOT_ASKED)
        progress.show("tracing the arms, which is not measured")
        return ArmTraces(arms, self.directory).of(outcome)

    def _record(
        self, outcome: Outcome, session: Session, first: Measured, traces: Sequence[ArmTrace]
    ) -> None:
        """Write the report, the result, the plot and the profile, and exit with the verdict."""
        setting = evolve(self._setting(session, first), traces=traces)
        best = ""
        if outcome.is_better:
            best = trained_profile(outcome, self.origin.table, setting)
            write_atomically(self.directory / PROFILE, best)
        write_atomically(self.directory / PLOT, climb_plot(outcome))
        write_atomically(self.directory / REPORT, report(outcome, setting))
        result = asdict(result_of(outcome, setting, str(self.origin.table["id"]), session.readings))
        write_atomically(self.directory / RESULT, json.dumps(result, indent=2) + "\n")
        self._publish(result)
        say(f"{session.measured} measurements, {setting.engines_used} engines started")
        self.show(verdict_of(outcome), self.directory / REPORT, best)
        click.get_current_context().exit(0 if outcome.is_better else EXIT_FINDINGS)

    def _publish(self, result: dict[str, Any]) -> None:
        """Have the agent show the result. One that refuses it, or is gone, changes no verdict."""
        try:
            self.door.keep_result(result)
        except TemperError as error:
            say(f"the agent does not show the result: {error}")

    def _setting(self, session: Session, first: Measured) -> Setting:
        options = self.options
        return Setting(
            workload=self.directory.name,
            pods=self.door.pods,
            command=options["benchmark"],
            metric=options["metric"],
            unit=first.unit,
            better=first.better,
            mode=self.look.mode,
            engine=self.look.engine,
            machine=self.node.machine,
            kernel=self.node.kernel,
            date=dt.datetime.now(dt.UTC).date().isoformat(),
            engines_used=session.arms.engines_used,
            measurements=session.measured,
            bundles=self.origin.bundles,
            groups=self.origin.groups,
            untold=self.origin.untold,
        )
