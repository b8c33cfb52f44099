"""One layer of a plan: who lives there, and what CPUs it may have."""

from attrs import frozen

from temper_core.records.matching import Matcher
from temper_core.records.tiers import LayerKind, Tier


@frozen
class Layer:
    """One layer of the plan. ``cpus_*`` in CPUs, ``None`` for Open layers, which own none.

    ``matches``: any of the blocks, all of a block. A block of no matcher takes every thread.
    ``members`` are the keys of the pods that live here, ``group_members`` those of which only
    some threads do, by the thread groups of their profile.
    """

    name: str
    kind: LayerKind
    matches: tuple[tuple[Matcher, ...], ...]
    tier: Tier | None = None
    cpus_min: int | None = None
    cpus_max: int | None = None
    util_range: tuple[float, float] | None = None
    exclusive: bool = False
    protected: bool = False
    preempt: bool = False
    slice_us: int = 20_000
    weight: int = 100
    members: tuple[str, ...] = ()
    demoted: bool = False
    reason: str = ""
    group_members: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """What the layer is for, independent of its position."""
        return self.name

    @property
    def hint(self) -> int | None:
        """The hint that leads here, where the plan is steered."""
        for block in self.matches:
            for matcher in block:
                if matcher.kind == "HintEquals":
                    return int(matcher.value)
        return None
