"""Measures BPF programs by the kernel's own count of their time, and prints the figures."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temper_core.bpf.access import probe
from temper_core.errors import BpfError

STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
Figures = Mapping[str, Mapping[str, Any]]


@contextmanager
def counted_by_kernel() -> Iterator[None]:
    """Let the kernel count the run time of BPF programs for a while."""
    before = STATS.read_text()
    STATS.write_text("1")
    try:
        yield
    finally:
        STATS.write_text(before)


def mean_run_ns(program: int) -> int:
    """Return the kernel's mean ns per run of the program of this descriptor, 0 without runs."""
    text = Path(f"/proc/self/fdinfo/{program}").read_text()
    fields = dict(re.findall(r"^(run_time_ns|run_cnt):\s*(\d+)", text, re.MULTILINE))
    runs = int(fields.get("run_cnt", 0))
    return int(fields["run_time_ns"]) // runs if runs else 0


def report(about: str, measure: Callable[..., Figures], **defaults: int) -> int:
    """Measure with the options of the command line, and print the figures.

    Returns an exit code. It is 0 also if this machine cannot measure, for the printed reason.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true")
    options = vars(parser.parse_args())
    wants_json = options.pop("json")
    access = probe()
    if not access.is_allowed or os.geteuid():
        reason = access.reason or "the kernel counts for root only"
        print(f"not measured: {reason}; {access.remedy or 'run it as root'}")
        return 0
    try:
        figures = measure(**options)
    except BpfError as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    if wants_json:
        print(json.dumps(figures, indent=2))
    else:
        for name, values in figures.items():
            print(f"{name:8}", ", ".join(f"{key} {value}" for key, value in values.items()))
    return 0
