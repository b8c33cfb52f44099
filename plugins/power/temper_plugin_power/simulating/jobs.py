"""The jobs of a synthetic day, by a seed."""

from collections.abc import Iterator
from math import exp, pi, sin
from random import Random

from attrs import frozen

HOUR_S = 3600.0
DAY_H = 24.0
SWING = 0.6
"""Of the arrivals around their mean. The busiest hour is 15:00, the quietest 3:00."""
PEAK_H = 15.0
SPREAD = 0.5
"""Of the logarithm of a job's length."""
LEAST_WORK_S, MOST_WORK_S = 60.0, 6 * HOUR_S


@frozen
class Kind:
    """A kind of job."""

    name: str
    share: float
    """Of all arrivals."""
    workload_class: str
    sensitivity: str
    """How much a power cap slows it: high, medium or low."""
    intensity: str
    """How hard it drives its cores: high, medium or low."""
    cores: int
    median_min: float
    """Minutes at full speed."""


KINDS = (
    Kind("solver", 0.10, "performance", "high", "high", cores=8, median_min=40),
    Kind("service", 0.20, "performance", "medium", "medium", cores=2, median_min=60),
    Kind("build", 0.20, "standard", "high", "high", cores=4, median_min=10),
    Kind("etl", 0.25, "standard", "low", "medium", cores=4, median_min=30),
    Kind("crawler", 0.25, "standard", "low", "low", cores=1, median_min=20),
)


@frozen
class Job:
    """A job. ``seen`` is the kind in its profile, which may be wrong."""

    number: int
    kind: Kind
    seen: Kind
    arrives_s: float
    work_s: float
    """Its length at full speed."""


@frozen
class Day:
    """The parameters of a day.

    *wrong_share* is the share of jobs whose profile is that of a kind drawn anew.
    """

    hours: float = DAY_H
    jobs_per_hour: float = 120.0
    wrong_share: float = 0.1


def mean_cores(day: Day) -> float:
    """Return the cores that the jobs of a day take on average, at full speed."""
    factor = exp(SPREAD**2 / 2)  # by which the mean of a length is above its median
    minutes = sum(kind.share * kind.cores * kind.median_min for kind in KINDS)
    return day.jobs_per_hour * minutes * factor / 60


def make_jobs(day: Day, seed: int) -> tuple[Job, ...]:
    """Return the jobs of a day in the order of their arrival. One seed always gives the same."""
    random = Random(seed)  # noqa: S311 - a simulation
    return tuple(
        _job(number, at_s, day, random) for number, at_s in enumerate(_arrivals(day, random))
    )


def rate_at(hour: float, mean: float) -> float:
    """Return the arrivals per hour at an *hour* of the day."""
    return mean * (1 + SWING * sin(2 * pi * (hour - PEAK_H + DAY_H / 4) / DAY_H))


def _arrivals(day: Day, random: Random) -> Iterator[float]:
    """Yield the times of a Poisson process whose rate follows the hour, by thinning."""
    most = day.jobs_per_hour * (1 + SWING)
    at_h = random.expovariate(most)
    while at_h < day.hours:
        if random.random() * most < rate_at(at_h % DAY_H, day.jobs_per_hour):
            yield at_h * HOUR_S
        at_h += random.expovariate(most)


def _job(number: int, at_s: float, day: Day, random: Random) -> Job:
    shares = [kind.share for kind in KINDS]
    kind, other = random.choices(KINDS, shares, k=2)
    is_wrong = random.random() < day.wrong_share
    length_s = kind.median_min * 60 * exp(random.gauss(0, SPREAD))
    work_s = max(LEAST_WORK_S, min(MOST_WORK_S, length_s))
    return Job(number, kind, other if is_wrong else kind, at_s, work_s)
