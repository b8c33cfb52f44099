"""The CPU request, the CPU limit, and whether hot threads need cores of their own."""

import math
from collections.abc import Iterator

from attrs import evolve, frozen

from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.advice.records import Verdict
from temper_plugin_rightsizer.demand.interval import Counts, IntervalDemand

STEP_MILLIS = 10
"""Requests and limits are rounded up to this."""
RAISED_BY = 1.5
"""A limit that throttles too much grows by this factor, as the demand above it is not visible."""
_NEAR = 1e-6
_DIGITS, _MOST_DIGITS = 3, 9
"""Decimals of printed CPUs."""
_DAY_BEFORE = "a day ago the hours after this time of day"


@frozen
class CpuAdvice:
    """``limit_millis`` is None if no limit is recommended."""

    verdict: Verdict
    request_millis: int
    limit_millis: int | None
    hot_threads: tuple[str, ...]
    hot_cores: int
    reasons: tuple[str, ...]


def advise_cpu(
    demand: IntervalDemand,
    limit_millis: int | None,
    options: AdviceOptions,
    day_before: IntervalDemand | None = None,
) -> CpuAdvice:
    """Return advice for *demand* of a container with the CPU limit *limit_millis*, or none.

    Without a hot thread the request is the percentile of the whole demand, with the margin. Each
    hot thread gets a whole core, and the percentile of the rest is added with the margin. If
    *day_before*, the demand that is likely to come next, needs a larger request or has more hot
    threads, those count.
    """
    need = _need(demand, options)
    reasons = [_request_reason(demand, need, options)]
    if day_before is not None:
        later = _need(day_before, options)
        reasons += _day_before_reasons(need, later, options)
        larger = max(need, later, key=lambda each: each.request_millis)
        hotter = max(need, later, key=lambda each: each.hot)
        need = evolve(larger, hot=hotter.hot, hot_threads=hotter.hot_threads)
    limit, limit_reason = _limit(demand, limit_millis, need.request_millis, options)
    return CpuAdvice(
        verdict=Verdict.EXCLUSIVE if need.hot else Verdict.SHARED,
        request_millis=need.request_millis,
        limit_millis=limit,
        hot_threads=need.hot_threads,
        hot_cores=need.hot,
        reasons=(*reasons, *limit_reason),
    )


@frozen
class _Need:
    """The request that a demand needs.

    ``hot`` is the number of hot threads, and ``rest`` the CPUs of all others.
    """

    request_millis: int
    hot: int
    rest: float
    hot_threads: tuple[str, ...]


def _need(demand: IntervalDemand, options: AdviceOptions) -> _Need:
    hot = hot_ranks(demand, options)
    rest = (demand.rests[hot - 1] if hot else demand.cpu).percentile(options.percentile)
    request = round_up(hot * 1000 + options.margin * rest * 1000)
    return _Need(request, hot, rest, _hot_names(demand, hot))


def hot_ranks(demand: IntervalDemand, options: AdviceOptions) -> int:
    """Return how many threads at a time are hot.

    A percentile is the upper bound of its bucket, so the comparison allows for one bucket.
    """
    hot = 0
    for used in demand.ranks:
        if used.percentile(options.percentile) < options.hot:
            break
        hot += 1
    return hot


def round_up(millis: float) -> int:
    """Return *millis* rounded up to ``STEP_MILLIS``, which is also the least."""
    return max(math.ceil(millis / STEP_MILLIS - _NEAR), 1) * STEP_MILLIS


def cpus(used: float, digits: int = _DIGITS) -> str:
    """Return *used* rounded up to thousandths: ``0.154``. A percentile is an upper bound, too."""
    return f"{math.ceil(used * 10**digits - _NEAR) / 10**digits:.9g}"


def arithmetic(rest: float, request_millis: int, options: AdviceOptions, hot: int = 0) -> str:
    """Return how the request follows from what is printed: ``1.25 x 0.154 = 0.1925, so 0.2``.

    *rest* has as many digits as that takes.
    """
    sums = (
        (factor, hot + options.margin * float(factor))
        for factor in (cpus(rest, digits) for digits in range(_DIGITS, _MOST_DIGITS))
    )
    fitting = (each for each in sums if round_up(each[1] * 1000) == request_millis)
    exact = f"{rest:.9g}"
    factor, total = next(fitting, (exact, hot + options.margin * rest))
    product, request = f"{total:.9g}", cores(request_millis)
    rounded = f", so {request}" if request != product else ""
    return f"{f'{hot} + ' if hot else ''}{options.margin:g} x {factor} = {product}{rounded}"


def throttled_share(counts: Counts) -> float:
    """Return the share of the quota's periods in which the container was throttled."""
    return counts.throttled_periods / counts.periods if counts.periods else 0.0


def _limit(
    demand: IntervalDemand, limit_millis: int | None, floor: int, options: AdviceOptions
) -> tuple[int | None, tuple[str, ...]]:
    """Return the limit, never below *floor*, the request. A container without one gets none."""
    if limit_millis is None:
        return None, ()
    throttled = throttled_share(demand.counts)
    if throttled > options.throttle_target:
        wanted = max(round_up(limit_millis * RAISED_BY), floor)
        reason = (
            f"throttled in {throttled:.1%} of its periods ({demand.counts.throttled_s:.0f} s), "
            f"more than {options.throttle_target:.1%}: limit {cores(limit_millis)} -> "
            f"{cores(wanted)}"
        )
        return wanted, (reason,)
    if floor > limit_millis:
        return floor, (f"the limit {cores(limit_millis)} is below the need of {cores(floor)}",)
    return limit_millis, ()


def _request_reason(demand: IntervalDemand, need: _Need, options: AdviceOptions) -> str:
    share, hot, rest = f"P{options.percentile * 100:g}", need.hot, need.rest
    sum_of = _arithmetic(need, options)
    if not hot:
        busiest = demand.ranks[0].percentile(options.percentile) if demand.ranks else 0.0
        thread = f"the busiest thread used {busiest:.2f} CPUs" if busiest else "no thread was busy"
        return (
            f"{share} of the container is {cpus(rest)} CPUs and {thread}, below {options.hot:g}: "
            f"{sum_of}"
        )
    uses = ", ".join(f"{used.percentile(options.percentile):.2f}" for used in demand.ranks[:hot])
    return (
        f"{hot} hot {'thread uses' if hot == 1 else 'threads use'} {uses} CPUs at {share}, "
        f"the rest {cpus(rest)}: {sum_of}"
    )


def _day_before_reasons(need: _Need, later: _Need, options: AdviceOptions) -> Iterator[str]:
    """Yield what *later*, the need of the day before, adds to *need*."""
    hot = f"{later.hot} hot {'thread' if later.hot == 1 else 'threads'}"
    if later.request_millis > need.request_millis:
        hot = f" with {hot}" if later.hot else ""
        yield f"{_DAY_BEFORE} needed more{hot}: {_arithmetic(later, options)}"
    elif later.hot > need.hot:
        names = f" ({', '.join(later.hot_threads)})" if later.hot_threads else ""
        yield f"{_DAY_BEFORE} had {hot}{names}"


def _arithmetic(need: _Need, options: AdviceOptions) -> str:
    return arithmetic(need.rest, need.request_millis, options, hot=need.hot)


def _hot_names(demand: IntervalDemand, hot: int) -> tuple[str, ...]:
    names = sorted(demand.names, key=lambda name: (-demand.names[name], name))
    return tuple(names[:hot])


def cores(millis: int) -> str:
    """Return *millis* as cores: ``1.5``."""
    return f"{millis / 1000:g}"
