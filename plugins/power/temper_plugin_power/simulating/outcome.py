"""The figures of a simulated day."""

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean

from temper_plugin_power.simulating.arms import Fleet
from temper_plugin_power.simulating.world import Ended, Ran

KWH_J = 3.6e6
MINUTE_S = 60.0
ENERGY = "energy_kwh"
SLOWDOWNS: Mapping[str, Callable[[Ended], bool]] = {
    "slowdown_performance": lambda each: each.job.kind.workload_class == "performance",
    "slowdown_standard": lambda each: each.job.kind.workload_class == "standard",
    "slowdown_sensitive": lambda each: each.job.kind.sensitivity == "high",
}


def figures_of(ran: Ran, fleet: Fleet, until_s: float) -> Mapping[str, float]:
    """Return the figures of a day. The nodes idle from its end *until_s*.

    So the energy of two arms is that of the same time and the same work.
    """
    idle_j = ran.idle_j + fleet.nodes * fleet.machine.idle_watts * (until_s - ran.end_s)
    dynamic_j = sum(each.energy_j for each in ran.jobs)
    performance = [each for each in ran.jobs if SLOWDOWNS["slowdown_performance"](each)]
    return {
        ENERGY: (idle_j + dynamic_j) / KWH_J,
        "dynamic_kwh": dynamic_j / KWH_J,
        **{
            name: _mean(_slowdown(each) for each in ran.jobs if belongs(each))
            for name, belongs in SLOWDOWNS.items()
        },
        "wait_performance_min": _mean(_wait_min(each) for each in performance),
        "wait_all_min": _mean(_wait_min(each) for each in ran.jobs),
        "performance_time_on_eco_pct": 100 * _share_on_eco(performance),
        "eco_node_time_pct": 100 * ran.eco_node_s / (fleet.nodes * ran.end_s) if ran.end_s else 0.0,
        "jobs": float(len(ran.jobs)),
    }


def _slowdown(each: Ended) -> float:
    """Return the time that a job ran by the time that it had taken at full speed."""
    return each.ran_s / each.job.work_s


def _wait_min(each: Ended) -> float:
    return (each.started_s - each.job.arrives_s) / MINUTE_S


def _share_on_eco(jobs: list[Ended]) -> float:
    ran_s = sum(each.ran_s for each in jobs)
    return sum(each.eco_s for each in jobs) / ran_s if ran_s else 0.0


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return fmean(known) if known else 0.0
