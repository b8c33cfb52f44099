"""Who woke whom, who ran while others waited, and how long they waited: short watched windows."""

from attrs import frozen


@frozen
class Party:
    """A thread as one end of an edge; ``pod`` is ``namespace/name``, empty outside of pods."""

    tid: int
    comm: str
    process: str = ""
    pod: str = ""
    layer: str = ""


@frozen
class WakeEdge:
    """``waker`` woke ``wakee`` that often in the window; from an interrupt the waker is nobody."""

    waker: Party
    wakee: Party
    wakes: int


@frozen
class Blocking:
    """``runner`` had the CPU that ``waiter`` waited for: in how many waits, and for how long."""

    waiter: Party
    runner: Party
    waits: int
    waited_s: float


@frozen
class WaitHistogram:
    """How long threads waited for a CPU; ``counts[n]`` are waits under ``2**n`` microseconds.

    The last count is of all longer ones. ``subject`` is a pod, or ``layer NAME``, or ``node``.
    """

    subject: str
    counts: tuple[int, ...]
    total_s: float = 0.0


@frozen
class WakeWindow:
    """One window in which every wake-up and switch was watched.

    ``at`` is its wall-clock end. ``every_s`` is the time from one window to the next as chosen by
    the budget, ``switches_per_s`` the rate by which its length was chosen, ``lost`` the edges that
    found no room.
    """

    at: float
    length_s: float
    every_s: float
    switches_per_s: float
    edges: tuple[WakeEdge, ...] = ()
    blockings: tuple[Blocking, ...] = ()
    waits: tuple[WaitHistogram, ...] = ()
    lost: int = 0
