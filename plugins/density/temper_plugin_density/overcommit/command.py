"""``temper overcommit``: the admission webhook, a preview of what it does, and a report."""

import click


@click.group("overcommit")
def overcommit() -> None:
    """Lower the CPU requests of pods as they are made."""
