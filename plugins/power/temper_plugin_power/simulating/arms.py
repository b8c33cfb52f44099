"""An arm's knowledge of a job for its placement, and how many performance nodes it asks for."""

from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction

from attrs import frozen

from temper_plugin_power.classifier.hints import Hints
from temper_plugin_power.operating.buckets import Bucket
from temper_plugin_power.operating.guard import NodePod, blocking_cause
from temper_plugin_power.operating.policies import WEIGHTS, Queue, queue_count, static_count
from temper_plugin_power.placing.demands import PodDemand
from temper_plugin_power.placing.subjects import PodView
from temper_plugin_power.simulating.jobs import Job
from temper_plugin_power.simulating.physics import Machine
from temper_plugin_power.standing import standing_of

STATIC, QUEUE = "static_partition", "queue_aware_v1"


class Arm(StrEnum):
    """One side of the comparison. ``UNCAPPED`` has no eco nodes at all."""

    UNCAPPED = "uncapped"
    WITHOUT = "without profiles"
    WITH = "with profiles"


@frozen
class Policy:
    """How many nodes are performance nodes, and the cap of the others."""

    name: str = STATIC
    fraction: float = 0.5
    eco_pct: float = 60.0

    def performance_count(self, nodes: int, demand: Fraction) -> int:
        """Return the number of performance nodes for so much weighted *demand*."""
        if self.name == QUEUE:
            return queue_count(nodes, demand, Queue(base_fraction=self.fraction))
        return static_count(nodes, self.fraction)


@frozen
class Fleet:
    """The nodes of a simulation, all alike, and the policy that caps some of them."""

    nodes: int = 12
    machine: Machine = Machine()
    policy: Policy = Policy()


@frozen
class SeenJob:
    """A job as the placement of an arm sees it."""

    job: Job
    is_performance: bool
    pod: PodView
    is_blocking: bool
    """Whether it keeps its node from becoming an eco node."""

    @classmethod
    def of(cls, job: Job, arm: Arm) -> "SeenJob":
        """Return *job* with its profile, right or wrong, or without any."""
        seen = job.seen
        hints = Hints()
        if arm is Arm.WITH:
            hints = Hints(workload_class=seen.workload_class, cpu_sensitivity=seen.sensitivity)
        standing = standing_of(hints, None)
        is_blocking = blocking_cause(NodePod(Bucket.GENERAL, hints)) is not None
        pod = PodView(standing, PodDemand(cores=job.kind.cores))
        return cls(job, standing.workload_class == "performance", pod, is_blocking)


def weighted_demand(jobs: Iterable[SeenJob]) -> Fraction:
    """Return the demand for performance nodes by *jobs*, running and waiting."""
    weights = (WEIGHTS[each.job.seen.intensity] for each in jobs if each.is_performance)
    return sum(weights, Fraction(0))
