"""Pods of sleeping threads, which an agent steers: their cgroups, processes and PodList."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path

from attrs import define, field

from bench.ladder.arms import CRITICAL
from bench.ladder.loads import command
from bench.ladder.pods import Pod, podlist, running

THREADS_PER_POD = 20
PAUSE_US = 666_667
"""The threads wake three times in two seconds, as the busy ones of ``bench/overhead.py``."""
PROFILE_ID = "napping"
PROFILE = f"""
schema_version = 1
id = "{PROFILE_ID}"

[fingerprint]
processes = ["named-by-annotation-alone"]

[[thread_groups]]
name = "naps"
match = [{{ comm_prefix = "ladder-nap" }}]
treatment = "latency"
"""
NORMAL, BEST_EFFORT = 0, -1000
PRIORITIES = (CRITICAL, *(NORMAL, BEST_EFFORT) * 5)
"""One pod of eleven is critical, with a profile. The others are normal and best effort by turns."""
CRITICAL_MILLICORES, NORMAL_MILLICORES = 10, 1


def pods_of(count: int) -> list[Pod]:
    """Return so many pods. A larger number has those of a smaller one, and more."""
    return [
        _pod(number, priority)
        for number, priority in enumerate(islice(cycle(PRIORITIES), count), 1)
    ]


def _pod(number: int, priority: int) -> Pod:
    is_critical = priority == CRITICAL
    requests = {CRITICAL: CRITICAL_MILLICORES, NORMAL: NORMAL_MILLICORES}
    profile = PROFILE_ID if is_critical else ""
    return Pod(f"nap-{number}", number, priority, requests.get(priority, 0), profile=profile)


@define
class Tenants:
    """The pods that run now. *load* is the program of ``ladder/load.c``.

    Their cgroups are below *root*, a cgroup v2 tree, and have no weights.
    """

    root: Path
    load: Path
    podlist: Path
    _running: dict[Pod, ExitStack] = field(factory=dict)

    def grow(self, count: int) -> None:
        """Have so many pods run, and the PodList say so."""
        for pod in pods_of(count):
            if pod not in self._running:
                self._begin(pod)
        self.podlist.write_text(podlist(self._running))

    def _begin(self, pod: Pod) -> None:
        arguments = {"threads": THREADS_PER_POD - 1, "pause_us": PAUSE_US}
        programs = ExitStack()
        nap = command(self.load, "nap", arguments)
        cgroup = self.root / pod.container
        cgroup.mkdir(parents=True, exist_ok=True)
        programs.callback(_remove, cgroup, self.root)
        programs.enter_context(running(cgroup, nap))
        self._running[pod] = programs

    def replace(self, turn: int) -> None:
        """Restart the container of one pod, another one at each turn."""
        pod = list(self._running)[turn % len(self._running)]
        self._running[pod].close()
        self._begin(pod)

    def end(self) -> None:
        """End all processes."""
        while self._running:
            self._running.popitem()[1].close()


def _remove(cgroup: Path, root: Path) -> None:
    """Remove a cgroup, and those above it that are empty then."""
    with suppress(OSError):
        while cgroup != root:
            cgroup.rmdir()
            cgroup = cgroup.parent


@contextmanager
def tenants(root: Path, load: Path, list_file: Path) -> Iterator[Tenants]:
    """Have pods during the block."""
    made = Tenants(root, load, list_file)
    try:
        yield made
    finally:
        made.end()
