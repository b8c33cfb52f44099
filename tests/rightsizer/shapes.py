"""Demand of made-up programs, window by window."""

from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import WindowDemand, name_family

WINDOW_S = 10
HOURS = 6


def window(*threads, idle=0.0):
    """Return the window of threads given as (name, CPUs). *idle* is the use of small threads."""
    busy = sorted((used, name) for name, used in threads if used >= 0.25)[::-1][:8]
    return WindowDemand(
        total=sum(used for _, used in threads) + idle,
        run_delay=0.0,
        ranked=tuple(used for used, _ in busy),
        names=tuple(name_family(name) for _, name in busy),
    )


def learned(windows, seconds=WINDOW_S):
    demand = IntervalDemand()
    for each in windows:
        demand.add(each, seconds)
    return demand


def over_hours(make, hours=HOURS):
    """Return the demand of ``make(number)`` for each window of *hours*."""
    return learned(make(number) for number in range(hours * 3600 // WINDOW_S))
