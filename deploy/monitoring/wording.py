"""Parts that the dashboards share: colours of modes, and common queries."""

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
"""Texts and colours of the numbers of mode_number()."""
YES_NO = named_values((0, "no", Colour.GOOD), (1, "yes", Colour.WARNING))
"""Texts and colours of 0 and 1 where 1 is a problem."""


def mode_number() -> str:
    """Return a query of each node's mode as a number, its index in ``Mode``."""
    terms = (f'{n} * (temper_mode{{@, mode="{mode}"}} == 1)' for n, mode in enumerate(Mode))
    return f"max by (cluster, instance) ({' or '.join(terms)})"


def rate(series: str, *by: str, more: str = "") -> str:
    """Return a query of the growth of *series* per second, summed, or summed by labels."""
    return f"{_summed(by)}(rate({series}{{@{more}}}[$__rate_interval]))"


def grown(series: str, *by: str) -> str:
    """Return a query of the growth of *series* since the last point, summed in the same way."""
    return f"{_summed(by)}(increase({series}{{@}}[$__rate_interval]))"


def quantiles(series: str, *by: str) -> tuple[Query, ...]:
    """Return queries of a histogram's median, 90th, 99th and 99.9th percentiles."""
    labels = ", ".join(("le", *by))
    prefix = " ".join(f"{{{{{label}}}}}" for label in by)
    summed = f"sum by ({labels}) (rate({series}_bucket{{@}}[$__rate_interval]))"
    return tuple(
        Query(f"histogram_quantile({q}, {summed})", f"{prefix} p{q * 100:g}".strip())
        for q in (0.5, 0.9, 0.99, 0.999)
    )


def buckets(series: str) -> Query:
    """Return a query of a histogram's buckets, for a heat map."""
    return Query(f"sum by (le) (rate({series}_bucket{{@}}[$__rate_interval]))", "{{le}}")


def _summed(by: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(by)}) " if by else "sum"
