"""``temper placement``: the scheduler extender, and how it scores a node."""

import click


@click.group("placement")
def placement() -> None:
    """Score nodes for the cluster's scheduler."""
