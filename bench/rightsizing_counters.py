"""What the counters of containers cost a node, as a ratio to plain reads of the same files.

    python -m bench.rightsizing_counters [--containers N] [--rounds N]

It makes empty cgroups of its own in every hierarchy that the rightsizer reads, and removes them at
the end. Each round reads all of them in three ways, one after the other: by the rightsizer, by
open(2), read(2) and close(2) of the same files, and by the same of the files of pressure alone. CPU
times are medians over the rounds. Run it as root.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from temper_plugin_rightsizer.node.cgroup_counters import ROOT, STALLS, CgroupFiles
from temper_plugin_rightsizer.node.collector import COUNTERS_S

NAME = "temper-bench-counters"
HIERARCHIES = (".", "cpu", "memory", "unified")
PRESSURE = tuple(f"{resource}.pressure" for resource in STALLS)
COUNTED = (
    *("cpu.stat", "memory.stat", "memory.events", "memory.oom_control", "memory.current"),
    *("memory.usage_in_bytes", "memory.failcnt", *PRESSURE),
)
LARGEST = 64 * 1024
BUDGET_PERCENT = 0.05
"""Of a core, for all of the agent."""


def main() -> int:
    """Print the figures. Return 1 if this user can make no cgroups."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--containers", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    try:
        with cgroups(given.containers) as paths:
            report(paths, given.rounds)
    except OSError as error:
        print(f"bench: no cgroups can be made: {error}", file=sys.stderr)
        return 1
    return 0


def report(paths: Sequence[str], rounds: int) -> None:
    """Read the counters of *paths* in all ways, and print times and ratios."""
    files = CgroupFiles()
    plain = [path for each in paths for path in existing(each, COUNTED)]
    pressure = [path for each in paths for path in existing(each, PRESSURE)]
    ways: dict[str, Callable[[], object]] = {
        "the rightsizer": lambda: [files.read(path) for path in paths],
        "plain reads of its files": lambda: [contents(path) for path in plain],
        "plain reads of pressure alone": lambda: [contents(path) for path in pressure],
    }
    spent = cpu_s(ways, rounds)
    base = spent["plain reads of its files"]
    print(f"{len(paths)} containers, {len(plain)} files, of them {len(pressure)} of pressure")
    for name, seconds in spent.items():
        share = 100 * seconds / COUNTERS_S
        print(
            f"{name}: {seconds * 1e3:.2f} ms of CPU, ratio {seconds / base:.2f}, "
            f"{share:.4f} % of a core once in {COUNTERS_S:g} s (budget {BUDGET_PERCENT} %)"
        )


def cpu_s(ways: "dict[str, Callable[[], object]]", rounds: int) -> dict[str, float]:
    """Return the median CPU seconds of each way. The first round is not counted."""
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, read in ways.items():
            began = time.process_time()
            read()
            if turn:
                spent[name].append(time.process_time() - began)
    return {name: statistics.median(taken) for name, taken in spent.items()}


@contextmanager
def cgroups(number: int) -> Iterator[list[str]]:
    """Make *number* cgroups in each hierarchy that there is. Raises OSError if none can be made."""
    roots = [ROOT / each for each in HIERARCHIES if (ROOT / each / "cgroup.procs").exists()]
    paths = [f"{NAME}/app-{each}" for each in range(number)]
    try:
        for root in roots:
            for path in paths:
                (root / path).mkdir(parents=True)
        yield paths
    finally:
        for root in roots:
            for path in (*paths, NAME):
                with suppress(FileNotFoundError):
                    (root / path).rmdir()


def existing(path: str, names: Sequence[str]) -> Iterator[Path]:
    """Yield the files of a cgroup that there are, each once."""
    for name in names:
        candidates = (ROOT / each / path / name for each in HIERARCHIES)
        yield from (each for each in candidates if each.is_file())


def contents(path: Path) -> bytes:
    """Return what a file holds."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, LARGEST)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
