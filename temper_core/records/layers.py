"""One layer of a plan: its members and its CPUs."""

from attrs import frozen

from temper_core.records.engine_matchers import Matcher
from temper_core.records.tiers import LayerKind, Tier


@frozen
class Layer:
    """One layer of the plan. ``cpus_*`` are counts of CPUs, ``None`` for Open layers.

    A thread matches if all matchers of any block in ``matches`` hold. An empty block takes every
    thread. ``members`` are the keys of the pods in this layer. ``group_members`` are those with
    only some threads in it, by the thread groups of their profile.
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
        """The layer's identity, independent of its position."""
        return self.name

    @property
    def hint(self) -> int | None:
        """The hint of this layer if the plan is steered."""
        for block in self.matches:
            for matcher in block:
                if matcher.kind == "HintEquals":
                    return int(matcher.value)
        return None
