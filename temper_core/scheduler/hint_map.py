"""The scheduler's interface to steering: the map's pin, and the hints before an engine starts."""

from pathlib import Path
from typing import Protocol

from temper_core.records.plans import LayerPlan


class HintMap(Protocol):
    """The map of hints that a steered plan's engine reads. Steering owns it."""

    @property
    def path(self) -> Path:
        """The pin's path, for the engine's ``--task-hint-map``."""
        ...

    def ready(self, plan: LayerPlan) -> None:
        """Pin the map (again) and set every thread's hint as *plan* requires.

        Called while no engine reads the map: before a start, and between two engines of a warm
        swap. It takes milliseconds. Raises TemperError if the map cannot be pinned.
        """
        ...
