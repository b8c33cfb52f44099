"""A simulated node: its jobs, its energy, and what the plugin's own code decides for it."""

from math import inf

from attrs import define

from temper_plugin_power.operating.guard import State, Transition
from temper_plugin_power.operating.twin import Hardware, Situation, twin_of
from temper_plugin_power.placing.scoring import NodeFigures, NodeKind
from temper_plugin_power.placing.subjects import NodeView
from temper_plugin_power.simulating.arms import SeenJob
from temper_plugin_power.simulating.jobs import Job
from temper_plugin_power.simulating.physics import Machine, job_watts, power_left, speed

DONE_S = 1e-6
"""Work that is left by rounding."""


@define(eq=False)
class Running:
    """A job on a node."""

    seen: SeenJob
    started_s: float
    left_s: float
    """Of its work."""
    energy_j: float = 0.0
    eco_s: float = 0.0
    """The time that it ran on an eco node."""

    @property
    def job(self) -> Job:
        """The job."""
        return self.seen.job


class Node:
    """A node whose jobs advance from change to change. The cap of an eco node is *eco_pct*."""

    def __init__(self, name: str, machine: Machine, eco_pct: float) -> None:
        self.name, self.machine, self._eco_pct = name, machine, eco_pct
        self.running: list[Running] = []
        self.transition = Transition(
            "performance", "performance", is_draining=False, state=State.PERFORMANCE
        )
        self.idle_j = self.eco_s = 0.0
        self.free_cores = machine.cores
        self.next_end_s = inf
        self._at_s, self._left = 0.0, 1.0
        self._look()

    @property
    def is_eco(self) -> bool:
        """Whether the caps of an eco node are in force."""
        return self.transition.in_force == "eco"

    @property
    def cap_pct(self) -> float:
        """The cap in force, in percent of the maximum."""
        return self._eco_pct if self.is_eco else 100.0

    def advance(self, now_s: float) -> list[Running]:
        """Let the jobs run until *now_s*. Return those that have ended."""
        elapsed_s, self._at_s = now_s - self._at_s, now_s
        self.idle_j += self.machine.idle_watts * elapsed_s
        self.eco_s += elapsed_s * self.is_eco
        for each in self.running:
            each.left_s -= speed(each.job.kind, self._left) * elapsed_s
            each.energy_j += job_watts(each.job.kind, self.machine) * self._left * elapsed_s
            each.eco_s += elapsed_s * self.is_eco
        ended = [each for each in self.running if each.left_s <= DONE_S]
        if ended:
            self.running = [each for each in self.running if each.left_s > DONE_S]
            self._settle()
        return ended

    def start(self, seen: SeenJob, now_s: float) -> None:
        """Start a job. The node has been advanced to *now_s*."""
        self.running.append(Running(seen, now_s, seen.job.work_s))
        self._settle()

    def change(self, transition: Transition) -> None:
        """Put the caps and the label of a *transition* in force, as ``start``."""
        self.transition = transition
        self._look()
        self._settle()

    def _settle(self) -> None:
        """Share the power under the cap among the jobs, and find the next one to end."""
        self._left = power_left(
            (each.job.kind for each in self.running), self.machine, self.cap_pct
        )
        self.free_cores = self.machine.cores - sum(each.job.kind.cores for each in self.running)
        self.next_end_s = min(
            (self._at_s + each.left_s / speed(each.job.kind, self._left) for each in self.running),
            default=inf,
        )

    def _look(self) -> None:
        """Make the twin of the caps in force, as an operator does."""
        machine, step = self.machine, self.transition
        hardware = Hardware(sockets=1, cores=machine.cores, max_watts_per_socket=machine.max_watts)
        situation = Situation(step.in_force, is_draining=step.is_draining, cpu_cap_pct=self.cap_pct)
        twin = twin_of(hardware, situation)
        self.view = NodeView(twin, 0.0, hardware, label_profile=step.in_force)
        """A scheduler extender's view of it."""
        self.figures = NodeFigures.of(twin, NodeKind(twin.schedulable_class, hardware))
        """The input of its scores."""
