"""The loads: what is put on the node. A new load is one entry of ``LOADS``."""

from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import field, frozen

Arguments = Mapping[str, int | float | str]


def _none(_: int) -> int:
    return 0


def _level(level: int) -> int:
    return level


@frozen
class Load:
    """What a level of the load adds to the request server.

    ``noise`` is the number of log writers inside the server's own process, ``burst`` that of its
    threads that are busy at times, like a garbage collector's. ``spinners`` is the number of busy
    threads of another process, which runs in *mode* of the load program: in another pod, or
    ``in_servers_pod``. ``settle_ms`` is the time from the server's start to the first request.
    ``limit`` is that of the server's pod in millicores, 0 for none. *options* are further ones of
    ``load serve``.
    """

    summary: str
    noise: Callable[[int], int] = _none
    spinners: Callable[[int], int] = _none
    settle_ms: int = 600
    burst: Callable[[int], int] = _none
    mode: str = "spin"
    in_servers_pod: bool = False
    limit: int = 0
    options: Arguments = field(factory=dict)

    def background(self, level: int, counts: Path) -> Arguments:
        """Return the options of the busy threads for a level. They count turns in a file."""
        return {"threads": self.spinners(level), "counts": str(counts)}


LOADS: Mapping[str, Load] = {
    "weight": Load(
        "busy threads in a best-effort pod",
        spinners=_level,
    ),
    "short": Load(
        "busy threads in a best-effort pod, with requests of a quarter of the work",
        spinners=_level,
        options={"turns": 31_250},
    ),
    "noise": Load(
        "busy log writers in the server's own process",
        noise=_level,
        # A thread that was always runnable since its start changes its layer when it is displaced
        # for it, which takes two walks of one second.
        settle_ms=2500,
    ),
    "burst": Load(
        "threads like a garbage collector's, 20 ms of work each, together every 200 ms, in the "
        "server's own process",
        burst=_level,
        options={"burst_turns": 5_000_000, "burst_ms": 200},
    ),
    "compress": Load(
        "busy compressors (zlib) in the server's pod, as a process of their own",
        spinners=_level,
        mode="compress",
        in_servers_pod=True,
        settle_ms=2500,
    ),
    "quota": Load(
        "a `cpu.max` of 1.5 CPUs on the server's pod, whose log writers write 250 lines each, "
        "some 20 ms of work, every 400 ms",
        noise=_level,
        options={"lines": 250, "lines_ms": 400},
        limit=1500,
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
            "burst": load.burst(level),
            **load.options,
        }


def command(program: Path, mode: str, arguments: Arguments) -> list[str]:
    """Return the command line of the load program."""
    return [str(program), mode, *(f"{key}={value}" for key, value in arguments.items())]
