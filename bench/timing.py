"""Compares commands on a noisy machine: alternately, in several rounds, by ratios of medians."""

import resource
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any


def cpu_ms_in_turn(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, float]:
    """Run every command once per round. Return the median CPU milliseconds of each."""
    spent: dict[str, list[float]] = {name: [] for name in commands}
    for round_number in range(rounds + 1):
        for name, command in commands.items():
            taken = _cpu_ms(command)
            if round_number:  # the first round warms the caches
                spent[name].append(taken)
    return {name: round(statistics.median(values), 2) for name, values in spent.items()}


def _cpu_ms(command: Sequence[str]) -> float:
    before = _children_cpu_s()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (_children_cpu_s() - before) * 1e3


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def median_ms(work: Any, rounds: int) -> float:  # noqa: ANN401 - any callable without arguments
    """Call *work* repeatedly. Return the median wall milliseconds of a call."""
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1e3)
    return round(statistics.median(taken), 3)
