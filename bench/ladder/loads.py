"""The loads: what is put on the node. A new load is one entry of ``LOADS``."""

from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

Arguments = Mapping[str, int | float | str]


@frozen
class Load:
    """What a level of the load adds to the request server.

    ``noise`` is the number of log writers inside the server's own process, ``spinners`` that of
    busy threads in another pod. ``settle_ms`` is the time from the server's start to the first
    request.
    """

    summary: str
    noise: Callable[[int], int]
    spinners: Callable[[int], int]
    settle_ms: int

    def background(self, level: int, counts: Path) -> Arguments:
        """Return the options of ``load spin`` for a level. It counts its turns in a file."""
        return {"threads": self.spinners(level), "counts": str(counts)}


LOADS: Mapping[str, Load] = {
    "weight": Load(
        "busy threads in a best-effort pod",
        noise=lambda _: 0,
        spinners=lambda level: level,
        settle_ms=600,
    ),
    "noise": Load(
        "busy log writers in the server's own process",
        noise=lambda level: level,
        spinners=lambda _: 0,
        # A thread that was always runnable since its start changes its layer when it is displaced
        # for it, which takes two walks of one second.
        settle_ms=2500,
    ),
}


@frozen
class Server:
    """The request server's size: one request takes *turns* loops of two instructions."""

    seconds: float = 4.0
    period_us: int = 8000
    turns: int = 125_000
    servers: int = 1

    def arguments(self, load: Load, level: int, seed: int) -> Arguments:
        """Return the options of ``load serve`` for a level."""
        return {
            "seconds": self.seconds,
            "period_us": self.period_us,
            "turns": self.turns,
            "servers": self.servers,
            "seed": seed,
            "settle_ms": load.settle_ms,
            "noise": load.noise(level),
        }


def command(program: Path, mode: str, arguments: Arguments) -> list[str]:
    """Return the command line of the load program."""
    return [str(program), mode, *(f"{key}={value}" for key, value in arguments.items())]
