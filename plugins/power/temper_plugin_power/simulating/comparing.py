"""Simulates the same days in each arm, and compares their figures over seeds."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from attrs import frozen

from temper_plugin_power.simulating.arms import Arm, Fleet
from temper_plugin_power.simulating.intervals import Interval, interval
from temper_plugin_power.simulating.jobs import Day, make_jobs
from temper_plugin_power.simulating.outcome import figures_of
from temper_plugin_power.simulating.world import World

Figures = Mapping[str, float]


@frozen
class Comparison:
    """The figures of each arm over seeds, and the difference that profiles make, by seed."""

    seeds: tuple[int, ...]
    arms: Mapping[Arm, Mapping[str, Interval]]
    difference: Mapping[str, Interval]
    """With profiles less without, of the same day each. Its interval is that of the pairs."""


def compare(
    day: Day,
    fleet: Fleet,
    seeds: Sequence[int],
    tick: Callable[[int, Arm], object] = lambda _seed, _arm: None,
) -> Comparison:
    """Simulate a day for each of *seeds* in each arm. *tick* is called often, and may raise."""
    days = [figures_of_day(day, fleet, seed, tick) for seed in seeds]
    names = list(days[0][Arm.WITH])
    return Comparison(
        tuple(seeds),
        {
            arm: {name: interval([each[arm][name] for each in days]) for name in names}
            for arm in Arm
        },
        {
            name: interval([each[Arm.WITH][name] - each[Arm.WITHOUT][name] for each in days])
            for name in names
        },
    )


def figures_of_day(
    day: Day, fleet: Fleet, seed: int, tick: Callable[[int, Arm], object]
) -> Mapping[Arm, Figures]:
    """Return the figures of one day in each arm. All end with the last job of the slowest."""
    jobs = make_jobs(day, seed)
    ran = {arm: World(jobs, fleet, arm).run(partial(tick, seed, arm)) for arm in Arm}
    until_s = max(each.end_s for each in ran.values())
    return {arm: figures_of(each, fleet, until_s) for arm, each in ran.items()}
