"""What the dashboards have in common: how modes look, and queries that several of them ask."""

from deploy.monitoring.panels import Colour, Json, Query, named_values
from temper_core.records.snapshots import Mode

FLEET, NODE, POD = "temper-fleet", "temper-node", "temper-pod"

_LOOKS = {
    Mode.ENFORCING: ("enforcing", Colour.GOOD),
    Mode.RELOADING: ("reloading", Colour.BUSY),
    Mode.OBSERVE_ONLY: ("only observing", Colour.ODD),
    Mode.SAFE_MODE: ("safe mode", Colour.BAD),
}
MODES: list[Json] = named_values(*((n, *_LOOKS[mode]) for n, mode in enumerate(Mode)))
"""How the numbers of mode_number() look."""
YES_NO = named_values((0, "no", Colour.GOOD), (1, "yes", Colour.WARNING))
"""How 0 and 1 look where 1 is not as it should be."""


def mode_number() -> str:
    """Ask for each node's mode as a number, by the order of the modes in the code."""
    told = (f'{n} * (temper_mode{{@, mode="{mode}"}} == 1)' for n, mode in enumerate(Mode))
    return f"max by (cluster, instance) ({' or '.join(told)})"


def rate(series: str, *by: str, more: str = "") -> str:
    """Ask for what *series* grows by in a second, summed, or summed by some labels."""
    return f"{_summed(by)}(rate({series}{{@{more}}}[$__rate_interval]))"


def grown(series: str, *by: str) -> str:
    """Ask for what *series* grew by since the last point, summed in the same way."""
    return f"{_summed(by)}(increase({series}{{@}}[$__rate_interval]))"


def quantiles(series: str, *by: str) -> tuple[Query, ...]:
    """Ask for the median and what 10 %, 1 % and 0.1 % of a histogram are above."""
    kept = ", ".join(("le", *by))
    named = " ".join(f"{{{{{label}}}}}" for label in by)
    told = f"sum by ({kept}) (rate({series}_bucket{{@}}[$__rate_interval]))"
    return tuple(
        Query(f"histogram_quantile({q}, {told})", f"{named} p{q * 100:g}".strip())
        for q in (0.5, 0.9, 0.99, 0.999)
    )


def buckets(series: str) -> Query:
    """Ask for a histogram's buckets, for a heat map."""
    return Query(f"sum by (le) (rate({series}_bucket{{@}}[$__rate_interval]))", "{{le}}")


def _summed(by: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(by)}) " if by else "sum"
