"""The limit of a package that a specification asks for, within its bounds."""

from attrs import frozen

from temper_plugin_power.node.actions import AS_LOW
from temper_plugin_power.node.energy import MICRO
from temper_plugin_power.node.spec_file import CapSpec

LEAST_SHARE = 0.2
"""Of the maximum. Below it a node may be too slow to report that it is too slow."""


@frozen
class Limit:
    """The decision about a package: a limit in microwatts, None for none of ours, and why."""

    uw: int | None = None
    note: str = ""
    """Why it differs from what is asked for."""
    is_blocked: bool = False


def limit_of(spec: CapSpec, max_uw: int, before_uw: int) -> Limit:
    """Return the limit of a package with a maximum and the limit that it had before ours.

    Watts win over percent. A cap never raises a limit, and is no less than ``LEAST_SHARE`` of the
    maximum. Without a known maximum there is none.
    """
    if not spec.asks_for_cpu:
        return Limit()
    if not max_uw:
        return Limit(note="the kernel names no maximum of the package", is_blocked=True)
    asked_uw = spec.watts * MICRO if spec.watts is not None else max_uw * (spec.percent or 0) / 100
    least_uw = max_uw * LEAST_SHARE
    note = ""
    if asked_uw < least_uw:
        note = f"raised to {LEAST_SHARE:.0%} of the maximum"
    limit_uw = round(max(asked_uw, least_uw))
    if limit_uw >= min(before_uw, max_uw):
        return Limit(note=AS_LOW)
    return Limit(limit_uw, note)
