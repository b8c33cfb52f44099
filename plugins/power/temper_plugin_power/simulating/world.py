"""One simulated day of one arm: arrivals, cycles of the operator, placements, ends of jobs."""

from collections import deque
from collections.abc import Callable, Sequence
from math import inf

from attrs import frozen

from temper_plugin_power.operating.guard import transition
from temper_plugin_power.operating.partition import NodeShape, performance_nodes
from temper_plugin_power.placing.rejecting import rejection
from temper_plugin_power.placing.scoring import PodTerms, performance_pressure, score_of
from temper_plugin_power.placing.subjects import Choices
from temper_plugin_power.simulating.arms import (
    STATIC,
    Arm,
    Fleet,
    Policy,
    SeenJob,
    weighted_demand,
)
from temper_plugin_power.simulating.jobs import Job
from temper_plugin_power.simulating.node import Node

CYCLE_S = 60.0
ALL_PERFORMANCE = Policy(STATIC, fraction=1.0)
FULL = 100
CHOICES = Choices()


@frozen
class Ended:
    """A job that has ended."""

    job: Job
    node: str
    started_s: float
    ended_s: float
    energy_j: float
    eco_s: float

    @property
    def ran_s(self) -> float:
        """The time that it ran."""
        return self.ended_s - self.started_s


@frozen
class Ran:
    """The outcome of a day."""

    jobs: tuple[Ended, ...]
    end_s: float
    idle_j: float
    """Of all nodes until the end."""
    eco_node_s: float
    """The time that nodes were eco nodes, summed."""


class World:
    """The nodes of one arm, and the jobs that wait."""

    def __init__(self, jobs: Sequence[Job], fleet: Fleet, arm: Arm) -> None:
        self._policy = ALL_PERFORMANCE if arm is Arm.UNCAPPED else fleet.policy
        self._nodes = [
            Node(f"node-{number:03}", fleet.machine, fleet.policy.eco_pct)
            for number in range(fleet.nodes)
        ]
        self._shapes = [NodeShape(node.name, cpu_models=("simulated",)) for node in self._nodes]
        self._arriving = deque(SeenJob.of(job, arm) for job in jobs)
        self._waiting: list[SeenJob] = []
        self._ended: list[Ended] = []
        self._next_cycle_s = 0.0
        self._pressure = 0.0
        self._has_room = False
        """Whether a job that waits may fit now."""

    def run(self, tick: Callable[[], object] = lambda: None) -> Ran:
        """Run until the last job has ended. *tick* is called in each cycle, and may raise."""
        now_s = 0.0
        while self._arriving or self._waiting or any(node.running for node in self._nodes):
            now_s = self._next_s()
            self._end_jobs(now_s)
            if now_s >= self._next_cycle_s:
                tick()
                self._cycle(now_s)
            if self._has_room:
                self._has_room = False
                self._waiting = [job for job in self._waiting if not self._place(job, now_s)]
            while self._arriving and self._arriving[0].job.arrives_s <= now_s:
                job = self._arriving.popleft()
                # Those that wait already do not fit, so that none is overtaken.
                if not self._place(job, now_s):
                    self._waiting.append(job)
        for node in self._nodes:
            node.advance(now_s)
        idle_j = sum(node.idle_j for node in self._nodes)
        return Ran(tuple(self._ended), now_s, idle_j, sum(node.eco_s for node in self._nodes))

    def _next_s(self) -> float:
        arrival_s = self._arriving[0].job.arrives_s if self._arriving else inf
        return min(self._next_cycle_s, arrival_s, *(node.next_end_s for node in self._nodes))

    def _end_jobs(self, now_s: float) -> None:
        for node in self._nodes:
            if node.next_end_s <= now_s:
                self._advance(node, now_s)

    def _advance(self, node: Node, now_s: float) -> None:
        for each in node.advance(now_s):
            self._has_room = True
            self._ended.append(
                Ended(each.job, node.name, each.started_s, now_s, each.energy_j, each.eco_s)
            )

    def _cycle(self, now_s: float) -> None:
        """Decide as an operator: how many performance nodes, which, and when they change."""
        self._next_cycle_s = now_s + CYCLE_S
        running = (each.seen for node in self._nodes for each in node.running)
        demand = weighted_demand((*running, *self._waiting))
        count = self._policy.performance_count(len(self._nodes), demand)
        performance = performance_nodes(self._shapes, count)
        for node in self._nodes:
            desired = "performance" if node.name in performance else "eco"
            blocking = sum(each.seen.is_blocking for each in node.running)
            step = transition(desired, node.transition.in_force, blocking)
            if step != node.transition:
                self._has_room = True
                self._advance(node, now_s)
                node.change(step)
        self._pressure = performance_pressure(node.view for node in self._nodes)

    def _place(self, seen: SeenJob, now_s: float) -> bool:
        """Start a job on the best node that takes it. Return False if none does."""
        cores = seen.job.kind.cores
        fitting = [node for node in self._nodes if node.free_cores >= cores]
        taking = [node for node in fitting if rejection(seen.pod, node.view) is None]
        if not taking:
            return False
        terms = PodTerms(seen.pod, self._pressure, CHOICES)
        best = max(taking, key=lambda node: _points(node, terms))
        self._advance(best, now_s)
        best.start(seen, now_s)
        return True


def _points(node: Node, terms: PodTerms) -> float:
    """Return the extender's score, and that of kube-scheduler for free cores, with equal weight."""
    return score_of(node.figures, terms).points + FULL * node.free_cores / node.machine.cores
