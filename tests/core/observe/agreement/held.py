"""Holds the numbers of an ``/observe`` document against reads of the kernel's own files.

A window begins and ends with a look of the agent's. With one read before and one after each of
the two, whatever has been counted in the window lies between two differences of reads, and those
are equal for everything that rested during both looks.
"""

from attrs import frozen

from tests.core.observe.agreement.looks import Look, added
from tests.core.observe.kernel_side.proc_reads import TELLS_MIGRATIONS

NS = 1e9
US = 1e6
ROUNDED = 1e-6
"""Ratios, and the length of the window, are told to six digits."""
TICK_S = 0.011
"""A start is told in ticks of a hundredth of a second."""
COUNTS = ("runs", "voluntary", "involuntary", "migrations")
UNKNOWN_TO_PROC = {"policy": "", "nice": 0, "rt_priority": 0, "affinity": []}
LISTED_WITHIN = 1.25
"""Of threads that used the same within a quarter octave some may have rows, and some not."""
WAITED_WITHIN = 4 * LISTED_WITHIN
"""A wait counts half for each eight threads of the pod, user or service that waited about as long
(``WAITED_SHARE`` in look.h). On a busy machine a crew has more than eight such threads."""


@frozen
class Window:
    """The reads around the two looks of one window: before and after the first and the second.

    ``between`` are quick reads of gauges around the second look, as often as gauges may change.
    """

    before: Look
    begun: Look
    ending: Look
    after: Look
    between: tuple[dict[str, dict[str, float]], ...] = ()

    def counted(self, of):
        """Return between what a counter, which *of* takes from a read, has grown in the window."""
        least = of(self.ending) - of(self.begun)
        return max(0, least), of(self.after) - of(self.before)

    def stood(self, of):
        """Return between what a gauge stood at the second look."""
        return tuple(sorted((of(self.ending), of(self.after))))

    def stood_pressure(self, key, name):
        """Return between what a number of a PSI file stood; the empty *key* is the node's."""
        looks = (self.ending, self.after)
        places = [look.pods[key] if key else look.node for look in looks]
        stood = [place.gauges[name] for place in places]
        stood += [gauges[key][name] for gauges in self.between]
        return min(stood), max(stood)

    def is_fact(self, of):
        """Tell whether *of* takes the same from both reads around the second look."""
        return of(self.ending) == of(self.after)


@frozen
class Compared:
    """One number or word as it was told, and what it may be; both ends are in."""

    what: str
    told: object
    least: object
    most: object
    slack: float = 0.0

    @property
    def holds(self):
        if isinstance(self.told, (int, float)) and isinstance(self.least, (int, float)):
            return self.least - self.slack <= self.told <= self.most + self.slack
        return self.told == self.least

    @property
    def is_exact(self):
        return self.least == self.most

    def __str__(self):
        wanted = self.least if self.is_exact else f"{self.least} to {self.most}"
        return f"{self.what}: told {self.told}, is {wanted} (+-{self.slack:.1g})"


def hold(document, window, strangers=0):
    """Return everything that was compared, of threads, pods and the node.

    *strangers* are threads of others that may come or go while /proc is read.
    """
    rows = {row["tid"]: row for row in document["threads"] if row["tid"] is not None}
    threads = window.after.threads.keys() & window.ending.threads.keys()
    return [
        *(
            each
            for tid in sorted(threads)
            for each in _thread(rows.get(tid), tid, document, window)
        ),
        *(each for pod in document["pods"] for each in _pod(pod, document, window)),
        *_node(document, window, strangers),
    ]


def _thread(row, tid, document, window):
    if row is None:
        yield from _unlisted(tid, document, window)
        return
    yield from _used(row, tid, document["window_s"], window)
    yield from _counts(row, tid, document["observing"]["tier"], window)
    yield from _facts(row, tid, document["observing"]["tier"], window)


def _count_of(tid, name):
    def of(look):
        return getattr(look.threads[tid].counts, name) if tid in look.threads else 0

    return of


def _unlisted(tid, document, window):
    """Hold a thread without a row to having used less than would have made one."""
    least_s = document["observing"]["least_s"]
    for name, within in (("run_ns", LISTED_WITHIN), ("delay_ns", WAITED_WITHIN)):
        used_ns = window.counted(_count_of(tid, name))[0]
        yield Compared(f"{tid} without a row, {name}", used_ns / NS, 0.0, least_s * within, ROUNDED)


def _used(row, tid, window_s, window):
    for key, name in (("cpu_used", "run_ns"), ("run_delay_ratio", "delay_ns")):
        yield _share(f"{tid} {row['comm']} {key}", row[key], window_s, _ns(tid, name, window))
    waited = window.stood(lambda look: look.boot_ended - look.threads[tid].started_s)
    # One that waits for a CPU all the time counts nothing either.
    rests = window.is_fact(lambda look: look.threads[tid].counts) and not any(
        look.threads[tid].is_runnable for look in (window.ending, window.after)
    )
    yield Compared(f"{tid} waiting_s", row["waiting_s"], 0.0, 0.0 if rests else waited[1], TICK_S)
    yield Compared(f"{tid} age_s", row["age_s"], *waited, TICK_S)


def _ns(tid, name, window):
    return [count / NS for count in window.counted(_count_of(tid, name))]


def _share(what, ratio, window_s, seconds):
    """Hold a share of the window, which is never told as more than all of it."""
    slack = ROUNDED * (1 + window_s)
    least, most = (min(each, window_s) for each in seconds)
    return Compared(what, ratio * window_s, least, most, slack)


def _counts(row, tid, tier, window):
    for name in COUNTS:
        if tier == "proc":
            yield Compared(f"{tid} {name}", row[name], None, None)
        elif name != "migrations" or TELLS_MIGRATIONS:
            bounds = window.counted(_count_of(tid, name))
            yield Compared(f"{tid} {name}", row[name], *bounds)


def _facts(row, tid, tier, window):
    rests = window.is_fact(lambda look: look.threads[tid].counts)
    for name, fact in window.after.threads[tid].facts.items():
        stands = window.is_fact(lambda look, name=name: look.threads[tid].facts[name])
        if stands and (rests or name != "cpu"):  # who runs may have been there and back
            known = UNKNOWN_TO_PROC.get(name, fact) if tier == "proc" else fact
            yield Compared(f"{tid} {name}", row[name], known, known)


def _pod(pod, document, window):
    key = f"{pod['namespace']}/{pod['pod']}"
    if key not in window.after.pods:
        return
    yield from _pod_used(pod, key, document, window)
    yield from _throttled(pod, key, document["window_s"], window)
    for name in ("threads", "memory_bytes"):
        if name in window.after.pods[key].gauges:
            stood = window.stood(lambda look, name=name: look.pods[key].gauges[name])
            yield Compared(f"{key} {name}", pod[name], *stood)
    for name, fact in window.after.pods[key].facts.items():
        yield Compared(f"{key} {name}", pod[name], fact, fact)
    told = document["pressure"]["pods"][key]
    yield from _pressures(key, told, window)


def _pod_used(pod, key, document, window):
    window_s, tier = document["window_s"], document["observing"]["tier"]
    slack = 3 * ROUNDED * (1 + window_s)
    used = [us / US for us in window.counted(lambda look: look.pods[key].counters["usage_usec"])]
    least, most = _sums(key, window.begun, window.ending), _sums(key, window.before, window.after)
    yield Compared(f"{key} cpu_used", pod["cpu_used"] * window_s, *used, slack)
    short = used[0] - most["run_ns"] / NS, used[1] - least["run_ns"] / NS
    told = pod["short_lived_cpu_used"] * window_s
    yield Compared(f"{key} short_lived", told, max(0.0, short[0]), max(0.0, short[1]), slack)
    delay = least["delay_ns"] / NS, most["delay_ns"] / NS
    yield Compared(f"{key} run_delay", pod["run_delay"] * window_s, *delay, slack)
    # The proc tier counts none, but that of a pod of which nobody ran it knows.
    known = tier != "proc" or pod["switches"] is not None
    runs = (least["runs"], most["runs"]) if known else (None, None)
    yield Compared(f"{key} switches", pod["switches"], *runs)


def _sums(key, earlier, later):
    of = later.members[key]
    return added(earlier.threads, {tid: it for tid, it in later.threads.items() if tid in of})


def _throttled(pod, key, window_s, window):
    counters = window.after.pods[key].counters
    if "throttled_usec" in counters:
        grown = window.counted(lambda look: look.pods[key].counters["throttled_usec"])
        yield Compared(
            f"{key} throttled_s", pod["throttled_s"], *(us / US for us in grown), ROUNDED
        )
        if grown[1]:
            return
    if pod["unthrottled_pressure"] is None:
        return
    stalled = window.counted(lambda look: int(look.pods[key].gauges["cpu.some.total"]))
    told = pod["unthrottled_pressure"]
    yield _share(f"{key} unthrottled_pressure", told, window_s, [us / US for us in stalled])


def _node(document, window, strangers):
    told = document["overhead"]["threads_seen"]
    stood = window.stood(lambda look: look.node.gauges["threads_seen"])
    yield Compared("node threads_seen", told, *stood, strangers)
    yield from _pressures("", document["pressure"]["node"], window)


def _pressures(key, told, window):
    """Hold averages and totals, which the kernel updates every two seconds."""
    for resource, lines in told.items():
        for kind, line in lines.items():
            for name, value in (line or {}).items():
                file = f"{resource}.{kind}.{name.removesuffix('_us')}"
                stood = window.stood_pressure(key, file)
                yield Compared(f"{key or 'node'} pressure {file}", value, *stood, ROUNDED)
