"""Made-up containers of known shapes: the same numbers in each run.

Each shape gives samples of windows of ``WINDOW_S``. Its ``verdict`` is the right one.
"""

import math
from collections.abc import Callable, Iterator
from random import Random

from attrs import frozen

from temper_plugin_rightsizer.advice.records import Verdict
from temper_plugin_rightsizer.backtest.samples import Name, Sample

WINDOW_S = 30
HOUR_S = 3600
DAY_S = 24 * HOUR_S
MIB = 1024 * 1024
Threads = tuple[tuple[str, float], ...]


@frozen
class Load:
    """The demand of a program in a window: busy threads, other CPU use, MiB.

    ``throttled_s`` and ``oom_kill`` are as in ``Sample``.
    """

    threads: Threads = ()
    rest: float = 0.0
    memory_mib: float = 200.0
    throttled_s: float = 0.0
    oom_kill: int = 0


Program = Callable[[int, Random], Load]
"""Returns the demand in the window that begins at that second."""


@frozen
class Shape:
    """A container whose *program* runs in *replicas*, the last of which start at *grows_at*."""

    name: Name
    verdict: Verdict
    program: Program
    replicas: int = 1
    grows_at: int = 0

    def samples(self, seconds: int) -> Iterator[tuple[Name, Sample]]:
        """Yield the samples of the first *seconds*."""
        for number in range(self.replicas):
            # Not for secrets: the same numbers in each run.
            random = Random(f"{self.name} {number}")  # noqa: S311
            begins_at = self.grows_at if number >= max(self.replicas // 2, 1) else 0
            for at in range(begins_at, seconds, WINDOW_S):
                yield self.name, _sample(at, self.program(at, random), str(number))


def _sample(at: int, load: Load, replica: str) -> Sample:
    return Sample(
        at=at,
        seconds=WINDOW_S,
        cpu=sum(used for _, used in load.threads) + load.rest,
        threads=load.threads,
        memory_bytes=round(load.memory_mib * MIB),
        replica=replica,
        throttled_s=load.throttled_s,
        oom_kill=load.oom_kill,
    )


def _around(random: Random, mean: float, spread: float = 0.05, most: float = math.inf) -> float:
    return min(max(random.gauss(mean, spread * mean), 0.0), most)


def _lazy(_: int, random: Random) -> Load:
    return Load(tuple((f"lazy-{number}", _around(random, 0.29, 0.2)) for number in range(4)))


def _hot(_: int, random: Random) -> Load:
    return Load((("hot", _around(random, 0.99, 0.01, 1.0)), ("helper", _around(random, 0.17, 0.2))))


def _collector(at: int, random: Random) -> Load:
    collects = at % 900 < WINDOW_S
    gc = tuple((f"gc-{number}", _around(random, 0.9, 0.05, 1.0)) for number in range(2 * collects))
    return Load(gc, _around(random, 0.4), 600 + 300 * (at % 900) / 900)


def _cron(at: int, random: Random) -> Load:
    runs = at % HOUR_S < 120  # noqa: PLR2004 - two minutes of each hour
    job = (("cron", _around(random, 0.97, 0.02, 1.0)),) if runs else ()
    return Load(job, _around(random, 0.12), 400 if runs else 150)


def _leak(at: int, random: Random) -> Load:
    leaked = at % (2 * DAY_S) / HOUR_S * 12
    return Load((), _around(random, 0.3), 150 + leaked + _around(random, 5))


def _warming(at: int, random: Random) -> Load:
    is_starting = at % DAY_S < 180  # noqa: PLR2004 - three minutes of each day
    compiling = (("jit-1", 0.98), ("jit-2", 0.95), ("main", 0.99)) if is_starting else ()
    return Load(compiling, _around(random, 0.35), 350 if is_starting else 300)


def _sidecar(_: int, random: Random) -> Load:
    return Load((("proxy-1", _around(random, 0.92, 0.03, 1.0)),), _around(random, 0.3), 120)


def _beside(_: int, random: Random) -> Load:
    return Load((("app", _around(random, 0.3)),), _around(random, 0.1), 250)


def _throttled(_: int, random: Random) -> Load:
    hot = _around(random, 0.86, 0.02, 1.0)
    return Load((("hot", hot),), max(1.0 - hot, 0.0), throttled_s=0.1 * WINDOW_S)


def _pool(at: int, random: Random) -> Load:
    busy = 0.15 + 0.4 * (random.random() < 0.15)  # noqa: PLR2004 - bursts
    shift = at // WINDOW_S
    uses = [busy + 0.1 * ((number + shift) % 8) / 8 for number in range(8)]
    return Load(tuple((f"pool-{number}", used) for number, used in enumerate(uses)))


def _alternating(at: int, random: Random) -> Load:
    name = ("left", "right")[at // 300 % 2]
    return Load(((name, _around(random, 0.95, 0.03, 1.0)),), _around(random, 0.15))


def _restarting(at: int, random: Random) -> Load:
    number = at // 1200
    return Load(
        ((f"worker-{number}", _around(random, 0.93, 0.03, 1.0)),),
        _around(random, 0.2),
        200 + 300 * (at % 1200) / 1200,
        oom_kill=int(at % 1200 == 0 and at > 0),
    )


def _replica(at: int, random: Random) -> Load:
    day = 1 + 0.3 * math.sin(2 * math.pi * at / DAY_S)
    return Load(
        tuple((f"http-{number}", _around(random, 0.35 * day)) for number in range(3)), 0.1, 300
    )


def _daily(at: int, random: Random) -> Load:
    is_day = 8 * HOUR_S <= at % DAY_S < 18 * HOUR_S and at // DAY_S % 7 < 5  # noqa: PLR2004
    level = 1.6 if is_day else 0.3
    return Load((), _around(random, level, 0.1), 300 + 200 * is_day)


def _nightly(at: int, random: Random) -> Load:
    runs = at % DAY_S < HOUR_S
    job = (("batch", _around(random, 0.97, 0.02, 1.0)),) if runs else ()
    return Load(job, _around(random, 0.2), 900 if runs else 200)


SHAPES = (
    Shape("four lazy threads", Verdict.SHARED, _lazy),
    Shape("one hot thread", Verdict.EXCLUSIVE, _hot),
    Shape("garbage collector", Verdict.SHARED, _collector),
    Shape("cron job each hour", Verdict.SHARED, _cron),
    Shape("memory leak", Verdict.SHARED, _leak),
    Shape("start-up peak", Verdict.SHARED, _warming),
    Shape("heavy sidecar", Verdict.EXCLUSIVE, _sidecar),
    Shape("app beside a sidecar", Verdict.SHARED, _beside),
    Shape("throttled hot thread", Verdict.EXCLUSIVE, _throttled),
    Shape("bursty pool", Verdict.SHARED, _pool),
    Shape("two that alternate", Verdict.EXCLUSIVE, _alternating),
    Shape("restarting container", Verdict.EXCLUSIVE, _restarting),
    Shape("scaled deployment", Verdict.SHARED, _replica, replicas=4, grows_at=DAY_S // 2),
    Shape("day and night", Verdict.SHARED, _daily),
    Shape("batch each night", Verdict.SHARED, _nightly),
)
"""The last two do not fit into a window of six hours."""
