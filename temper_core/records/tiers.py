"""QoS tiers, and the engine's three kinds of layer."""

from enum import StrEnum


class Tier(StrEnum):
    """The importance of a pod on its node, most important first."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    BACKGROUND = "background"

    @property
    def rank(self) -> int:
        """Position in the order of importance: 0 is the most important."""
        return _RANKS[self]


TierOrSystem = Tier | None
"""A tier, or ``None`` for the system layer."""


class LayerKind(StrEnum):
    """The way a layer uses CPUs. The values are the engine's own spelling."""

    CONFINED = "Confined"
    GROUPED = "Grouped"
    OPEN = "Open"


_RANKS = {tier: rank for rank, tier in enumerate(Tier)}
FENCING_TIERS = (Tier.CRITICAL, Tier.HIGH)
"""The tiers that may own cores: those of a PriorityClass, which a quota can limit."""


class Isolation(StrEnum):
    """The use of a tier's own CPUs while its threads leave them idle.

    ``STRICT`` keeps them idle. ``LEND`` gives them to other threads until a thread of the tier
    wakes up and preempts one.
    """

    STRICT = "strict"
    LEND = "lend"
