"""Repeats the decisions and the linting of a recorded node, with the agent's own code.

The simulation reads nothing of this machine except its installed plugins.
"""

from collections.abc import Iterator
from pathlib import Path

from attrs import define, evolve, field, frozen

from temper_core.lint.windows import Linter
from temper_core.plan.change import ChangeKind, PlanChange, change_between
from temper_core.plan.shapes import Verdict, verdict
from temper_core.plugin_host import PluginHost, load_host
from temper_core.records.invariants import Invariant
from temper_core.records.lint import Violation
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import Snapshot
from temper_core.rehearsal.reader import RecordedMoment, Recording, RecordingHeader
from temper_core.rehearsal.simulated_course import SimulatedDecisions, Step
from temper_core.rehearsal.simulated_threads import MovedThreads, ThreadsElsewhere
from temper_core.settings.models import Settings

CORE = "core"


@frozen
class SimulationOverrides:
    """Replacements for recorded values. ``steered`` simulates hints in any case."""

    settings: Settings | None = None
    machine: MachineShape | None = None
    profiles: Path | None = None
    steered: bool = False


@frozen
class StandingViolation:
    """A violation that lasted for ``looks`` looks. ``until_s`` is None if it lasted to the end."""

    violation: Violation
    from_s: float
    until_s: float | None
    looks: int


@frozen
class Simulation:
    """The result of a simulation.

    ``looks`` counts the looks with a window, ``modes`` are the recorded modes of the agent.
    ``difference`` compares the plan with that of the last look, None if they are equal.
    ``threads`` are those that the two plans of any look put into different layers.
    """

    head: RecordingHeader
    began: float
    seconds: float
    looks: int
    modes: tuple[str, ...]
    plan: LayerPlan | None
    verdict: Verdict | None
    steps: tuple[Step, ...]
    invariants: tuple[str, ...]
    violations: tuple[StandingViolation, ...]
    difference: PlanChange | None
    threads: tuple[MovedThreads, ...]
    remarks: tuple[str, ...]

    @property
    def has_findings(self) -> bool:
        """Whether there was a violation, or the plan's shape is known to starve threads."""
        return bool(self.violations) or self.verdict is Verdict.BAD


def simulate(path: Path, given: SimulationOverrides) -> Simulation:
    """Simulate the recording at *path*. Raise DocumentError if it is not a valid recording."""
    recording = Recording(path)
    settings = given.settings or _without_plugin_files(recording.head.settings)
    host = load_host(settings)
    machine = given.machine or recording.head.machine
    course = SimulatedDecisions(settings, machine, host, given.steered, given.profiles)
    run = _Run(course, _Judgement.of(settings, host))
    for moment in recording.moments():
        run.take(moment)
    return run.result(recording.head, tuple(_remarks(recording.head, given, host)))


@define(eq=False)
class _Run:
    """The state of one simulation."""

    course: SimulatedDecisions
    judgement: "_Judgement"
    threads: ThreadsElsewhere = field(factory=ThreadsElsewhere)
    first: Snapshot | None = None
    last: Snapshot | None = None
    looks: int = 0
    modes: dict[str, None] = field(factory=dict)

    def take(self, moment: RecordedMoment) -> None:
        """Decide anew if the pods of *moment* changed, then lint its look."""
        snapshot = moment.snapshot
        self.first, self.last = self.first or snapshot, snapshot
        self.looks += snapshot.window_s > 0
        self.modes[snapshot.status.mode.value] = None
        at_s = snapshot.monotonic_s - self.first.monotonic_s
        self.course.follow(moment, at_s)
        self.judgement.take(snapshot, at_s)
        if self.course.plan is not None:
            self.threads.count(snapshot, self.course.plan)

    def result(self, head: RecordingHeader, remarks: tuple[str, ...]) -> Simulation:
        """Return the result."""
        plan, first, last = self.course.plan, self.first, self.last
        return Simulation(
            head=head,
            began=first.at if first else 0.0,
            seconds=last.monotonic_s - first.monotonic_s if first and last else 0.0,
            looks=self.looks,
            modes=tuple(self.modes),
            plan=plan,
            verdict=verdict(plan) if plan else None,
            steps=tuple(self.course.steps),
            invariants=self.judgement.linter.names,
            violations=tuple(self.judgement.stood),
            difference=_difference(last.plan if last else None, plan, self.course.settings),
            threads=self.threads.result(self.looks),
            remarks=remarks,
        )


@define(eq=False)
class _Judgement:
    """The linter, and the period of each violation."""

    linter: Linter
    host: PluginHost
    stood: list[StandingViolation] = field(factory=list)
    _open: dict[tuple[str, str], int] = field(factory=dict)

    @classmethod
    def of(cls, settings: Settings, host: PluginHost) -> "_Judgement":
        """Gather the invariants of every installed plugin."""
        contributions = host.gather("temper_invariants", Invariant)
        return cls(
            Linter([(c.plugin, c.record) for c in contributions], settings.lint, host.call), host
        )

    def take(self, snapshot: Snapshot, at_s: float) -> None:
        """Lint one look. The windows and the time are those of the recording."""
        violations = self.linter.judge(evolve(snapshot, plugins=self.host.states()))
        standing = {(lasting.invariant, lasting.subject): lasting for lasting in violations}
        for key in [key for key in self._open if key not in standing]:
            number = self._open.pop(key)
            self.stood[number] = evolve(self.stood[number], until_s=at_s)
        for key, violation in standing.items():
            if key not in self._open:
                self._open[key] = len(self.stood)
                self.stood.append(StandingViolation(violation, at_s, None, 0))
            number = self._open[key]
            looks = self.stood[number].looks + 1
            self.stood[number] = evolve(self.stood[number], violation=violation, looks=looks)


def _without_plugin_files(recorded: Settings) -> Settings:
    """Return *recorded* without its directory of plugin files: a recording may not name code."""
    return evolve(recorded, plugin_host=evolve(recorded.plugin_host, directory=""))


def _difference(
    recorded: LayerPlan | None, plan: LayerPlan | None, settings: Settings
) -> PlanChange | None:
    if recorded is None or plan is None:
        return None
    change = change_between(recorded, plan, can_swap=settings.scheduler.warm_swap)
    return None if change.kind is ChangeKind.NONE and not change.moves else change


def _remarks(head: RecordingHeader, given: SimulationOverrides, host: PluginHost) -> Iterator[str]:
    """Yield the recorded plugins and files that are missing in the simulation."""
    here = {state.name: state for state in host.states()}
    for plugin in head.plugins:
        if plugin.name != CORE and plugin.name not in here:
            yield f"plugin {plugin.name!r} was active where this was recorded, and is not here"
    directory = head.settings.plugin_host.directory
    if directory and given.settings is None:
        yield f"plugins of {directory}, which the recording names, were not loaded: see --settings"
    for path in head.left_out:
        yield f"{path} was left out of the recording"
