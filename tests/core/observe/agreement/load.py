"""The load under which the numbers are compared: crews of all kinds, and one that never rests."""

import os

from tests.core.observe.agreement.crews import NEVER_RESTS, Crew, Manner, Work, work_all

QUIET = ("api", "web", "mixed")
NOISE = "noise"
PODS = (*QUIET, NOISE)


class Load:
    """All crews, each in the cgroup of its pod; *folders* are those, by the pods' names."""

    def __init__(self, folders):
        self._noise = Crew(folders[NOISE], "noise", Work(2, NEVER_RESTS, 1))
        self._crews = [
            Crew(folders[pod], name, work, manner) for pod, name, work, manner in _crews()
        ]

    def disturb(self):
        """Let two threads spin from now on."""
        self._noise.begin()

    def work(self):
        """Let all others work, and wait until they rest."""
        work_all(self._crews)

    def end(self):
        """End everybody."""
        for crew in (self._noise, *self._crews):
            crew.end()


def _crews():
    first = min(os.sched_getaffinity(0))
    yield "api", "api", Work(6, 6), Manner()
    yield "web", "web", Work(10), Manner()
    yield "web", "brief", Work(1, births=4), Manner()
    yield "mixed", "nice", Work(2), Manner(nice=5)
    yield "mixed", "batch", Work(2), Manner(policy=os.SCHED_BATCH)
    yield "mixed", "fifo", Work(1), Manner(policy=os.SCHED_FIFO, priority=3)
    yield "mixed", "bound", Work(2), Manner(cpus=frozenset({first}))
