"""The outcome of recorded steps, had a container got the advice of a rule.

The recorded demand stays the same whatever the sizing. So work that a smaller request would have
delayed does not come back later, and demand above a limit of the time is not known.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add

from attrs import astuple, frozen

from temper_plugin_rightsizer.backtest.rules import HOUR_S, OURS, Rule, Sizing, peak_bytes
from temper_plugin_rightsizer.backtest.samples import Name, Step
from temper_plugin_rightsizer.demand.interval import IntervalDemand

LEARNING_S = 6 * HOUR_S
GIB = 1024.0**3


@frozen
class Outcome:
    """The outcome of a sizing.

    Attributes:
        throttled_s: Seconds of replicas whose demand was above their CPU request.
        late_core_s: CPU seconds of demand above the CPU requests.
        oom: Steps of replicas whose memory was above their memory request.
        core_s: CPU seconds that were requested.
        wasted_core_s: CPU seconds that were requested and not used.
        gib_s: Requested memory, in GiB times seconds.
        wasted_gib_s: Requested memory that was not used, as above.

    """

    throttled_s: float = 0.0
    late_core_s: float = 0.0
    oom: int = 0
    core_s: float = 0.0
    wasted_core_s: float = 0.0
    gib_s: float = 0.0
    wasted_gib_s: float = 0.0

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(*map(add, astuple(self), astuple(other)))


Sized = Sequence[tuple[Sizing, Step]]
"""The steps of a container after the learning time, each with the sizing of its time."""


def sized(steps: Sequence[Step], rule: Rule, learning_s: int = LEARNING_S) -> Sized:
    """Return the steps from *learning_s* seconds on, with what *rule* advised before each."""
    judged = []
    for step in steps:
        if step.at >= steps[0].at + learning_s:
            judged.append((rule.sizing(), step))
        rule.learn(step)
    return judged


def outcome(sized_steps: Sized, cpu_scale: float = 1.0, memory_scale: float = 1.0) -> Outcome:
    """Return what the sizings would have led to, each multiplied by the scales."""
    return total(
        _of_replica(Sizing(cpu_scale * sizing.cpu, memory_scale * sizing.memory_bytes), demand)
        for sizing, step in sized_steps
        for demand in step.replicas
    )


@frozen
class Comparison:
    """The outcome of each rule for each container.

    ``alone`` is what a rule advises. In ``equal`` all requests of a rule are multiplied by one
    factor, in ``scales`` (CPU, memory), so that all rules request as much in total as ours.
    """

    alone: Mapping[str, Mapping[Name, Outcome]]
    equal: Mapping[str, Mapping[Name, Outcome]]
    scales: Mapping[str, tuple[float, float]]


def compare(
    containers: Mapping[Name, Sequence[Step]],
    rules: Mapping[str, Callable[[], Rule]],
    learning_s: int = LEARNING_S,
) -> Comparison:
    """Replay *containers* with each of *rules*, at the budget of the rule ``OURS``."""
    judged = {
        rule: {name: sized(steps, make(), learning_s) for name, steps in containers.items()}
        for rule, make in rules.items()
    }
    alone = {rule: outcomes(by_name) for rule, by_name in judged.items()}
    budget = total(alone[OURS].values())
    scales = {rule: _scales(total(by_name.values()), budget) for rule, by_name in alone.items()}
    equal = {rule: outcomes(by_name, *scales[rule]) for rule, by_name in judged.items()}
    return Comparison(alone, equal, scales)


def outcomes(
    judged: Mapping[Name, Sized], cpu_scale: float = 1.0, memory_scale: float = 1.0
) -> Mapping[Name, Outcome]:
    """Return the outcome for each container."""
    return {
        name: outcome(sized_steps, cpu_scale, memory_scale) for name, sized_steps in judged.items()
    }


def total(parts: Iterable[Outcome]) -> Outcome:
    """Return the sum of *parts*."""
    return sum(parts, Outcome())


def _scales(own: Outcome, budget: Outcome) -> tuple[float, float]:
    return _ratio(budget.core_s, own.core_s), _ratio(budget.gib_s, own.gib_s)


def _ratio(wanted: float, own: float) -> float:
    return wanted / own if own else 1.0


def _of_replica(sizing: Sizing, demand: IntervalDemand) -> Outcome:
    demand = demand.whole()
    memory = demand.memory
    return Outcome(
        throttled_s=demand.cpu.seconds_above(sizing.cpu),
        late_core_s=demand.cpu.above(sizing.cpu),
        oom=int(peak_bytes(demand) > sizing.memory_bytes),
        core_s=sizing.cpu * demand.cpu.seconds,
        wasted_core_s=demand.cpu.below(sizing.cpu),
        gib_s=sizing.memory_bytes * memory.seconds / GIB,
        wasted_gib_s=memory.below(sizing.memory_bytes) / GIB,
    )
