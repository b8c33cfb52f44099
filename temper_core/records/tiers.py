"""QoS tiers, and the three kinds of layer the engine knows."""

from enum import StrEnum


class Tier(StrEnum):
    """How a pod stands against the other pods of its node, most important first."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    BACKGROUND = "background"

    @property
    def rank(self) -> int:
        """Position in the order of importance: 0 is the most important."""
        return _RANKS[self]


class LayerKind(StrEnum):
    """How a layer uses CPUs. The values are the engine's own spelling."""

    CONFINED = "Confined"
    GROUPED = "Grouped"
    OPEN = "Open"


_RANKS = {tier: rank for rank, tier in enumerate(Tier)}
