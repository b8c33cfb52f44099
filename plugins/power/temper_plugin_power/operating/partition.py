"""Chooses the performance nodes: the densest, and one of each hardware family."""

from collections.abc import Sequence

from attrs import frozen


@frozen
class NodeShape:
    """The hardware of a node, as far as the choice needs it."""

    name: str
    density: float = 0.0
    """Compute density of the node; higher is denser."""
    cpu_models: tuple[str, ...] = ()
    """The model by the catalogue, then the raw one. Empty if they are not known."""
    gpu_models: tuple[str, ...] = ()
    gpus: int = 0
    has_record: bool = True
    """Whether anything is known of its hardware."""

    @property
    def family(self) -> str:
        """The family that must not become all eco."""
        if not self.has_record:
            return f"unknown:{self.name}"
        kind, models = ("gpu", self.gpu_models) if self.gpus > 0 else ("cpu", self.cpu_models)
        known = (model.strip() for model in models)
        return f"{kind}:{next(filter(None, known), f'unknown-{kind}')}"


def performance_nodes(nodes: Sequence[NodeShape], count: int) -> frozenset[str]:
    """Return the names of *count* performance nodes, and more where there are more families.

    In the order of density, with ties by name, one of each family comes first.
    """
    ordered = sorted(nodes, key=lambda node: (-node.density, node.name))
    firsts = {node.family: node.name for node in reversed(ordered)}
    chosen = [node.name for node in ordered if firsts[node.family] == node.name]
    others = [node.name for node in ordered if firsts[node.family] != node.name]
    return frozenset((chosen + others)[: max(count, len(firsts))])
