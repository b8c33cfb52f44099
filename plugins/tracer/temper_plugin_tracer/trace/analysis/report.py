"""The results of an analysis: frozen records in nanoseconds, with names."""

from attrs import field, frozen

__all__ = [
    "LEVELS",
    "Distribution",
    "Edge",
    "Link",
    "Report",
    "Share",
    "SlowWakeUp",
    "Subject",
    "cpus_told",
    "percentages",
]

LEVELS = ("thread", "process", "group", "pod", "tier", "layer")
"""The levels by which threads are summed. A thread without a group, pod, tier or layer counts as
its process, or as its own name if its process is unknown."""


@frozen
class Distribution:
    """Durations of ended runs or waits.

    Attributes:
        count: How many.
        total_ns: Their sum.
        p50_ns: Half of them are at or under it. At most an eighth above the true median.
        p99_ns: The same for 99 of 100.
        longest_ns: The longest.
        powers: How many are below 2^0, 2^1, … ns and not below the power before.

    """

    count: int = 0
    total_ns: int = 0
    p50_ns: int | None = None
    p99_ns: int | None = None
    longest_ns: int = 0
    powers: tuple[int, ...] = ()


@frozen
class Share:
    """A party's part of a time. ``relation`` is what the party and the subject have in common."""

    party: str
    kind: str
    ns: int
    percent: float = 0.0
    relation: str = ""


@frozen
class Subject:
    """A thread, or threads that are summed.

    Attributes:
        level: One of ``LEVELS``.
        name: Its name.
        threads: How many threads it has.
        place: Pod and layer of a thread, as far as they are known.
        run_ns: Time on a CPU, runs that had not ended included.
        wait_ns: Time runnable without a CPU, waits that had not ended included.
        wakeups: Wake-ups that made a thread runnable.
        idle_wakeups: Wake-ups of threads that were runnable or ran.
        migrations: Runs on another CPU than the run before.
        preemptions: Runs that ended although the thread was runnable.
        shared_ns: Busy time of the sibling CPUs while it ran, None without a topology.
        outside_ns: Time on CPUs that the plan gives to others, None without a plan.
        slices: Ended runs.
        waits: Ended waits.
        blockers: By level of the parties: the parties on the CPU while it waited. They add up to
            ``wait_ns``.
        sharers: The same of the sibling CPUs while it ran. They add up to ``run_ns`` times the
            siblings of a CPU.

    """

    level: str
    name: str
    threads: int
    place: str
    run_ns: int
    wait_ns: int
    wakeups: int
    idle_wakeups: int
    migrations: int
    preemptions: int
    shared_ns: int | None
    outside_ns: int | None
    slices: Distribution
    waits: Distribution
    blockers: dict[str, tuple[Share, ...]] = field(factory=dict)
    sharers: dict[str, tuple[Share, ...]] = field(factory=dict)


@frozen
class Edge:
    """Wake-ups of one thread by another, or by interrupts. Only those whose wait ended."""

    waker: str
    woken: str
    count: int
    waits_ns: int
    longest_ns: int


@frozen
class Link:
    """A wake-up in a chain. ``wait_ns`` is None if the wait after it had not ended."""

    waker: str
    woken: str
    at_ns: int
    wait_ns: int | None


@frozen
class SlowWakeUp:
    """One of the slowest wake-ups.

    Attributes:
        woken: The thread.
        at_ns: Moment of the wake-up, from the trace's first event.
        wait_ns: Time until the thread ran.
        cpu: CPU that it then took.
        blockers: The parties on the CPU on which it was queued. They add up to ``wait_ns``.
        chain: The wake-up, then that of its waker, and so on.

    """

    woken: str
    at_ns: int
    wait_ns: int
    cpu: int
    blockers: tuple[Share, ...]
    chain: tuple[Link, ...]


@frozen
class Report:
    """The report of a trace.

    Attributes:
        begin_ns: Moment of the first event.
        length_ns: Time from the first to the last event.
        events: Number of events.
        cpus: One more than the highest CPU.
        only_cpus: The only CPUs whose events were recorded. Empty if all were.
        threads: Number of threads.
        whole_threads: Number of those that the trace has all events of. Only these are subjects.
        lost: Lost events by CPU.
        broken: Runs that do not fit the switches after them. There are some after losses.
        unwoken: Runs of sleeping threads that no recorded wake-up preceded.
        knows_throttling: Whether throttled threads are told from those that wait for others.
        folded: Small pairs of waiter and party that were summed as "others".
        subjects: By level, most wait first.
        edges: Most wait first.
        slowest: Slowest first.

    """

    begin_ns: int
    length_ns: int
    events: int
    cpus: int
    only_cpus: tuple[int, ...]
    threads: int
    whole_threads: int
    lost: dict[int, int]
    broken: int
    unwoken: int
    knows_throttling: bool
    folded: int
    subjects: dict[str, tuple[Subject, ...]]
    edges: tuple[Edge, ...]
    slowest: tuple[SlowWakeUp, ...]


def cpus_told(report: Report) -> str:
    """Return the CPUs of a report for people."""
    only = ", ".join(map(str, report.only_cpus))
    return f"only what happened on CPU {only}" if only else f"{report.cpus} CPUs"


def percentages(parts: list[int]) -> list[float]:
    """Return each part in per cent with one digit, so that they add up to exactly 100.

    The parts with the largest remainders are rounded up.
    """
    total = sum(parts)
    if not total:
        return [0.0 for _ in parts]
    tenths = [1000 * part // total for part in parts]
    remainders = sorted(range(len(parts)), key=lambda n: (-(1000 * parts[n] % total), n))
    for number in remainders[: 1000 - sum(tenths)]:
        tenths[number] += 1
    return [tenth / 10 for tenth in tenths]
