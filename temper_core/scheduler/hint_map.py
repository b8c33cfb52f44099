"""What the scheduler must know of steering: the map's pin, and when hints must be right."""

from pathlib import Path
from typing import Protocol

from temper_core.records.plans import LayerPlan


class HintMap(Protocol):
    """The map of hints that a steered plan's engine reads. Its owner is not the scheduler."""

    @property
    def path(self) -> Path:
        """Where the map is pinned for the engine's ``--task-hint-map``."""
        ...

    def ready(self, plan: LayerPlan) -> None:
        """Pin the map (again), and give every thread the hint that *plan* wants.

        Called while no engine reads the map: before a start, and between two engines of a warm
        swap. Milliseconds. Raises TemperError where the map cannot be pinned.
        """
        ...
