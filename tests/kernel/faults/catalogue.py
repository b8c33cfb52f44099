"""Every fault by its name: what is claimed of it, and in which boot it is shown."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Play = Callable[[Any], None]
Table = Mapping[str, Any]


@dataclass(frozen=True)
class Fault:
    """One case. ``play`` inflicts it on a Scene and raises where what follows is not as claimed.

    ``settings`` are for an agent of its own; without any, the case takes the group's. A case that
    takes minutes is not in every run.
    """

    id: str
    claim: str
    play: Play
    settings: Table = field(default_factory=dict)
    takes_minutes: bool = False


class Group:
    """Faults that share a boot, and as far as they let it live, an agent.

    ``order`` is what the engine is told between cases, ``home`` the mode the agent is in then.
    """

    def __init__(self, name: str, *, home: str, order: str, cpus: int = 4) -> None:
        self.name = name
        self.home = home
        self.order = order
        self.cpus = cpus
        self.faults: list[Fault] = []

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.faults)

    def fault(
        self, claim: str, *, takes_minutes: bool = False, **settings: Any
    ) -> Callable[[Play], Play]:
        """Add the decorated function, under its own name; *settings* by section."""

        def add(play: Play) -> Play:
            name = play.__name__.replace("_", "-")
            self.faults.append(Fault(name, claim, play, settings, takes_minutes))
            return play

        return add
