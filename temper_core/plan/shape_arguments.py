"""Shapes that starve no layer by the order in which the engine serves the layers of a CPU.

The order is that of ``layered_dispatch`` in scx_layered 1.1.4 (``docs/starvation.md``): a CPU that
a layer owns serves its owner first, at the latest once it was busy for two slices of it. An unowned
CPU serves the Open layers that preempt, then the other Open and Grouped layers in a random order.
A Confined layer is served on its own CPUs alone, so it takes no turn from others.
"""

from collections.abc import Sequence

from attrs import frozen

from temper_core.records.tiers import LayerKind


@frozen
class LayerShape:
    """The properties of one layer that dispatch depends on.

    With ``keeps_cpus`` it always owns some CPUs, not only when busy. ``is_system`` marks the layer
    with the stricter bound.
    """

    kind: LayerKind
    preempt: bool = False
    protected: bool = False
    exclusive: bool = False
    keeps_cpus: bool = False
    is_system: bool = False

    def __str__(self) -> str:
        """Return it as ``system:Grouped+preempt``. ``from-0`` owns CPUs only when busy."""
        flags = [flag for flag in ("preempt", "protected", "exclusive") if getattr(self, flag)]
        if self.kind is not LayerKind.OPEN and not self.keeps_cpus:
            flags.append("from-0")
        prefix = "system:" if self.is_system else ""
        return prefix + "+".join([self.kind.value, *flags])


def is_served(layers: Sequence[LayerShape]) -> bool:
    """Whether every layer of a shape that can have threads comes first on some CPU.

    The system layer counts as one that is not always busy, as in the tests on the real kernel.
    """
    system = next((layer for layer in layers if layer.is_system), None)
    if system is None:
        return False
    others = [layer for layer in layers if layer is not system and not _is_last(layer)]
    if system.keeps_cpus:
        return all(layer.kind is not LayerKind.OPEN for layer in others)
    return _is_alone_on_unowned_cpus(others)


def _is_last(layer: LayerShape) -> bool:
    """Whether it is the last layer of a steered plan, which no thread reaches."""
    return layer.kind is LayerKind.OPEN and layer.preempt


def _is_alone_on_unowned_cpus(others: Sequence[LayerShape]) -> bool:
    """Whether one Open layer shares the unowned CPUs with no layer but the system layer."""
    shared = [layer for layer in others if layer.kind is not LayerKind.CONFINED]
    owning = [layer for layer in others if layer.kind is LayerKind.CONFINED]
    return [layer.kind for layer in shared] == [LayerKind.OPEN] and all(
        layer.keeps_cpus for layer in owning
    )
