"""The four classes of threads, and the numbers that tell them apart.

Every rate is per second in which the thread did not wait for a CPU: a thread that computes and
sleeps in turn then has the numbers of an idle machine, however busy the machine was. Sleeps are
counted, not runs, since a thread that never sleeps runs as often as it is preempted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from attrs import evolve, field, frozen

MS_PER_S = 1_000

COMPUTE_SHARE = 0.5
COMPUTE_RUN_MS = 2.0
SPORADIC_RATE = 1.0
SPORADIC_SHARE = 0.01
BUSY_RATE = 20.0
CHAIN_RUN_MS = 1.0
CHAIN_INSIDE = 0.5
LATENCY_RUN_MS = 2.0

LEAST_WAKES = 20
"""Wake-ups in windows from which their wakers are known."""
LEAST_CHANNELS = 3
"""Samples of a sleeping thread from which its wait channels are known."""
LEAST_RUN_S = 0.1
"""Seconds on a CPU from which a thread that computes is known."""
LEAST_SLEEPS = 20
"""Sleeps from which a thread that is woken often is known."""
SURE = 0.6
"""Confidence below which a class is unclear."""
BY_CHANNEL_AT_MOST = 0.8
UNKNOWN_AT_MOST = 0.5
FITS_NONE_AT_MOST = 0.4


class ThreadClass(StrEnum):
    """The class of a thread, as a profile treats it."""

    SYNC_COMPUTE = "sync compute"
    LATENCY_CRITICAL = "latency critical"
    WAKE_CHAIN = "I/O wake chain"
    SPORADIC = "sporadic"


_WOKEN = frozenset((ThreadClass.LATENCY_CRITICAL, ThreadClass.WAKE_CHAIN))


class Channel(StrEnum):
    """The source of a thread's wake-ups, by the kernel function that it sleeps in."""

    THREADS = "other threads"
    TIMER = "a timer"
    NETWORK = "the network"
    DISK = "a disk"
    OTHER = "unknown"


_CHANNELS: Mapping[Channel, tuple[str, ...]] = {
    Channel.THREADS: ("futex", "pipe_", "anon_pipe", "unix_", "eventfd", "do_sem", "do_msg", "mq_"),
    Channel.TIMER: ("hrtimer_", "do_nanosleep", "common_nsleep", "do_sigtimedwait", "timerfd_"),
    Channel.NETWORK: ("wait_woken", "inet_", "sk_", "tcp_", "ep_poll", "do_epoll", "do_poll",
                      "poll_schedule", "do_select", "io_cqring", "skb_wait"),
    Channel.DISK: ("io_schedule", "folio_", "wait_on_page", "bit_wait", "jbd2", "submit_bio",
                   "blk_", "ext4_", "xfs_", "btrfs_", "rq_qos"),
}  # fmt: skip
"""Beginnings of the names of kernel functions. A compiler may append to a name."""


class Waking(NamedTuple):
    """How often a thread was seen to be woken, and how often by threads of the same program."""

    wakes: int = 0
    inside: int = 0


@frozen
class Behaviour:
    """The activity of one thread, or of several alike ones: the sums of their counters.

    ``sleeps_in`` counts samples by kernel function. ``waking`` is of the agent's windows.
    """

    lived_s: float
    run_s: float
    wait_s: float
    sleeps: int
    peak: float = 0.0
    sleeps_in: Mapping[str, int] = field(factory=dict)
    waking: Waking = Waking()

    @property
    def unwaiting_s(self) -> float:
        """Seconds in which it did not wait for a CPU, at least those on a CPU."""
        return max(self.lived_s - self.wait_s, self.run_s)

    @property
    def share(self) -> float:
        """Share of a CPU that it uses if it does not have to wait for it."""
        return min(1.0, self.run_s / self.unwaiting_s) if self.unwaiting_s else 0.0

    @property
    def rate(self) -> float:
        """Sleeps per second if it does not have to wait for a CPU. Each ends with a wake-up."""
        return self.sleeps / self.unwaiting_s if self.unwaiting_s else 0.0

    @property
    def run_ms(self) -> float:
        """Mean milliseconds on a CPU from one sleep to the next."""
        return MS_PER_S * self.run_s / max(1, self.sleeps)

    @property
    def wait_share(self) -> float:
        """Share of its runnable time in which it waited for a CPU."""
        runnable_s = self.run_s + self.wait_s
        return self.wait_s / runnable_s if runnable_s else 0.0

    @property
    def channels(self) -> Mapping[Channel, int]:
        """Samples in which it slept, by what wakes it."""
        return _by_channel(self.sleeps_in.items())

    @property
    def inside_share(self) -> tuple[float, bool] | None:
        """Share of its wake-ups from threads of the program, and whether windows had them.

        Without enough windows the wait channels tell. None if neither does.
        """
        if self.waking.wakes >= LEAST_WAKES:
            return self.waking.inside / self.waking.wakes, True
        channels = self.channels
        total = sum(channels.values())
        return (channels[Channel.THREADS] / total, False) if total >= LEAST_CHANNELS else None


@frozen
class Classed:
    """The class of a behaviour, the confidence in it (0 to 1), and the reasons in words.

    ``doubt`` is what could not be told, empty if nothing.
    """

    kind: ThreadClass
    confidence: float
    why: str
    doubt: str = ""


def classify(behaviour: Behaviour) -> Classed:
    """Return the class of *behaviour*.

    The confidence is ``1 - 0.5 / d**2`` for the least factor *d* from a threshold to the number
    that passed it: 0.5 at the threshold, 0.88 at twice of it. It is a distance, no probability.
    """
    share, rate, run_ms = behaviour.share, behaviour.rate, behaviour.run_ms
    if share >= COMPUTE_SHARE and run_ms >= COMPUTE_RUN_MS:
        sure = min(_beyond(share, COMPUTE_SHARE), _beyond(run_ms, COMPUTE_RUN_MS))
        classed = Classed(ThreadClass.SYNC_COMPUTE, sure, "half a CPU or more, in long runs")
    elif rate < SPORADIC_RATE or share < SPORADIC_SHARE:
        sure = max(_beyond(SPORADIC_RATE, rate), _beyond(SPORADIC_SHARE, share))
        why = "woken seldom" if rate < SPORADIC_RATE else "little CPU time"
        classed = Classed(ThreadClass.SPORADIC, sure, why)
    elif rate >= BUSY_RATE and run_ms < LATENCY_RUN_MS:
        classed = _woken_often(behaviour)
    else:
        why = "woken too seldom, or running too long, for every other class"
        doubt = "fits no class well: the last one takes what is left"
        classed = Classed(ThreadClass.LATENCY_CRITICAL, FITS_NONE_AT_MOST, why, doubt)
    return _with_samples(behaviour, classed)


def _woken_often(behaviour: Behaviour) -> Classed:
    """Tell a wake chain from other threads with many wake-ups and short runs."""
    rate, run_ms = behaviour.rate, behaviour.run_ms
    known = behaviour.inside_share
    often = min(_beyond(rate, BUSY_RATE), _beyond(LATENCY_RUN_MS, run_ms))
    if run_ms >= CHAIN_RUN_MS:
        why = "woken often, runs too long for a wake chain"
        return Classed(ThreadClass.LATENCY_CRITICAL, min(often, _beyond(run_ms, CHAIN_RUN_MS)), why)
    if known is None:
        doubt = "what wakes it is not known: it may belong to an I/O wake chain"
        why = "woken often, short runs"
        return Classed(ThreadClass.LATENCY_CRITICAL, min(often, UNKNOWN_AT_MOST), why, doubt)
    inside, is_seen = known
    most = 1.0 if is_seen else BY_CHANNEL_AT_MOST
    by = "by its wakers" if is_seen else "by its wait channels"
    if inside >= CHAIN_INSIDE:
        sure = min(often, _beyond(inside, CHAIN_INSIDE), _beyond(CHAIN_RUN_MS, run_ms), most)
        why = f"woken often by threads of the program ({by})"
        return Classed(ThreadClass.WAKE_CHAIN, sure, why)
    why = f"woken often from outside or by timers ({by})"
    sure = min(often, _beyond(1.0 - inside, 1.0 - CHAIN_INSIDE), most)
    return Classed(ThreadClass.LATENCY_CRITICAL, sure, why)


def _with_samples(behaviour: Behaviour, classed: Classed) -> Classed:
    """Lower the confidence where too little was observed of *behaviour*."""
    doubt = ""
    if classed.kind is ThreadClass.SYNC_COMPUTE and behaviour.run_s < LEAST_RUN_S:
        doubt = f"too few samples: {behaviour.run_s:.2f} s on a CPU"
    elif classed.kind in _WOKEN and behaviour.sleeps < LEAST_SLEEPS:
        doubt = f"too few samples: {behaviour.sleeps} sleeps"
    most = UNKNOWN_AT_MOST if doubt else 1.0
    sure = round(min(classed.confidence, most), 2)
    return evolve(classed, confidence=sure, doubt=classed.doubt or doubt)


def _beyond(value: float, threshold: float) -> float:
    """Return the confidence of *value*, which is *threshold* or more."""
    if value <= 0:
        return UNKNOWN_AT_MOST
    return 1.0 - 0.5 * min(1.0, threshold / value) ** 2


def milliseconds(value: float) -> str:
    """Return *value* as text of three digits or more, without an exponent for large values."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits


def _by_channel(functions: Iterable[tuple[str, int]]) -> Counter[Channel]:
    sums = Counter[Channel]()
    for name, samples in functions:
        sums[channel_of(name)] += samples
    return sums


def channel_of(function: str) -> Channel:
    """Return what wakes a thread that sleeps in the kernel's *function*."""
    name = function.lstrip("_")
    for channel, beginnings in _CHANNELS.items():
        if name.startswith(beginnings):
            return channel
    return Channel.OTHER
