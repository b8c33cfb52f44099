"""The operator's policy: how far requests are lowered, and how a pod gets its tier."""

from collections.abc import Callable
from fractions import Fraction

from attrs import field, frozen

from temper_core import Pod, Tier
from temper_plugin_density.overcommit.names import SYSTEM_NAMESPACE

LEAST_MILLIS = 10
"""No request is lowered below this: on a full node a pod is sure of its request only."""

MOST_FREED_MILLIS = 8192 * 1000
"""A pod that would free more runs on no node: the largest NR_CPUS is that of x86-64, 8192
(arch/x86/Kconfig). A user may still create a pod that requests more, which would falsify the
sums."""

TierRule = Callable[[Pod], tuple[Tier, str]]


def _is_share(_: object, __: object, factor: Fraction) -> None:
    if not 0 < factor <= 1:
        raise ValueError(f"must be above 0 and at most 1, not {factor}")


@frozen
class Policy:
    """The operator's choices."""

    tier: TierRule
    factor: Fraction = field(default=Fraction(7, 10), validator=_is_share)
    spared_namespaces: frozenset[str] = frozenset({SYSTEM_NAMESPACE})

    def lowered(self, millis: int) -> int:
        """Return the lowered value of a request of *millis*, rounded up. It never grows."""
        if millis <= LEAST_MILLIS:
            return millis
        product = millis * self.factor
        return max(-(-product.numerator // product.denominator), LEAST_MILLIS)
