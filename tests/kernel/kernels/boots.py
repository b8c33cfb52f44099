"""Boots a kernel once, runs the tests of the object files in it, and reads what came of them."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from tests.kernel.guest import CHECKOUT, VM_RUN

GUEST_S = 1_800
ON_ARM64 = CHECKOUT / "build/venv-arm64/bin/python"
"""What ``scripts/install-arm64`` makes."""
OBSERVE = "tests/core/observe"
STEERING = "tests/core/steering/test_kernel"

PARTS: Mapping[str, Sequence[str]] = {
    "in_guest": ["tests/kernel/kernels/in_guest.py"],
    "test_rows": [
        f"{OBSERVE}/kernel_side/test_rows.py::test_{name}"
        for name in (
            "a_busy_threads_counters_lie_between_independent_reads",
            "threads_that_have_come_to_rest_are_told_to_the_nanosecond",
            "a_row_says_what_the_other_files_of_the_thread_say",
            "a_real_time_thread_is_told_with_its_priority",
            "a_thread_that_waits_for_a_cpu_is_told_so",
            "a_start_is_in_ticks_since_boot",
        )
    ],
    "test_sums": [
        f"{OBSERVE}/kernel_side/test_sums.py::test_{name}"
        for name in (
            "rows_and_rest_of_a_cgroup_are_what_its_threads_used",
            "all_threads_that_live_are_counted_where_they_live",
        )
    ],
    "test_lives": [
        f"{OBSERVE}/kernel_side/test_lives.py::test_{name}"
        for name in (
            "a_new_process_is_told_with_all_it_used_since_its_birth",
            "a_thread_is_told_in_the_cgroup_it_lives_in_now",
        )
    ],
    "tracer": [
        f"tests/tracer/test_kernel.py::test_{name}"
        for name in (
            "a_ping_pong_pair_wakes_each_other_as_often_as_they_slept",
            "histograms_add_up_to_the_kernels_own_counts_of_each_thread",
            "a_timer_that_fires_while_somebody_spins_is_nobodys_doing",
            "what_is_sent_over_the_loopback_is_the_senders_doing",
            "threads_that_came_and_went_have_names",
            "nothing_is_attached_outside_of_a_window",
        )
    ],
    "steering": [
        f"{STEERING}.py",
        f"{STEERING}_walk.py::test_every_thread_of_this_process_is_found",
    ],
}
"""What is run in each guest, by the word of the test files' names that tells whose result it is."""


@frozen
class Case:
    """One test in the guest; both texts are empty for one that passed."""

    name: str
    failure: str
    skipped: str


@frozen
class Booted:
    """What the tests in one guest came to; ``output`` is what they printed."""

    kernel: str
    cases: Mapping[str, Sequence[Case]]
    output: str


def boot(
    kernel: str,
    share: Path,
    parts: Mapping[str, Sequence[str]] = PARTS,
    *,
    prefix: Sequence[str] = (),
    cpus: int = 2,
    guest_s: int = GUEST_S,
) -> Booted:
    """Boot *kernel*, a series or a version, and run all *parts* by a command with *prefix*."""
    interpreter = ON_ARM64 if kernel.startswith("arm64") else sys.executable
    python = [*prefix, "env", f"KERNEL={kernel}", interpreter, "-m", "pytest", "-q", "--kernel"]
    options = ["-p", "no:cacheprovider", "--junitxml=/share/results.xml"]
    tests = [test for part in parts.values() for test in part]
    machine = ["--kernel", kernel, "--cpus", str(cpus), "--timeout", str(guest_s)]
    ran = subprocess.run(
        [VM_RUN, *machine, "--share", str(share), "--", *python, *options, *tests],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return Booted(kernel, _read(share / "results.xml", parts), ran.stdout)


def _read(results: Path, parts: Iterable[str]) -> Mapping[str, Sequence[Case]]:
    """Sort the cases of a JUnit file by part; without a file there are none."""
    found: dict[str, list[Case]] = {part: [] for part in parts}
    if results.exists():
        for element in ET.parse(results).iter("testcase"):
            place = element.get("classname", "")
            part = next((part for part in found if part in place.split(".")), "")
            found.setdefault(part, []).append(_case(element))
    return found


def _case(element: ET.Element) -> Case:
    return Case(
        element.get("name", ""), _told(element, "failure", "error"), _told(element, "skipped")
    )


def _told(element: ET.Element, *tags: str) -> str:
    """Return the message of the first of these that there is; never empty where there is one."""
    found = next((part for tag in tags for part in element.findall(tag)), None)
    return "" if found is None else found.get("message") or found.tag
