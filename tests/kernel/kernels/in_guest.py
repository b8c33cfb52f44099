"""What only another kernel can show, run by pytest inside the guest: ``KERNEL`` is its series.

The tiers' own tests run beside this, on the same object files; see ``test_kernels.py``.
"""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from temper_core.bpf.access import probe
from temper_core.observe.tiers import open_reader
from temper_plugin_tracer.kernel import WakeKernel

ROOT = Path(__file__).parents[3]
ANOTHER = ROOT / "tests/core/observe/kernel_side/as_another.py"
HIDE_BTF = 'mount -t tmpfs tmpfs /sys/kernel/btf && exec "$@"'
LACKS = "bpf: this kernel lacks a part of BPF that is needed (cannot load the BPF object"
is_old = os.environ["KERNEL"] == "6.1"


def tier_of(*arguments, prefix=()):
    """Open a tier in a process with fewer rights; return it, and why it is not a better one."""
    ran = subprocess.run(
        [*prefix, sys.executable, ANOTHER, "auto", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 0, ran.stderr
    tier, reason, sees_threads = ran.stdout.splitlines()
    assert sees_threads == "True"
    return tier, reason


def test_the_kernel_is_the_one_that_was_asked_for():
    release, kernel = os.uname().release, os.environ["KERNEL"]

    assert release.startswith(f"{kernel}.") or release.endswith(f"-{kernel}")


def test_the_best_tier_that_this_kernel_has_is_chosen_and_what_it_lacks_is_named():
    opened = open_reader()
    opened.reader.close()

    assert opened.reader.tier == ("bpf-iter" if is_old else "bpf")
    assert bool(opened.reason) is is_old
    assert opened.reason.startswith(LACKS if is_old else "")


def test_a_kernel_without_the_walk_is_told_what_newer_one_has_it():
    access = probe()

    assert access.is_allowed is not is_old
    assert ("Linux 6.7 or newer" in access.remedy) is is_old


@pytest.mark.parametrize(
    ("without", "lacks"),
    [("-bpf,-sys_admin", "lacks CAP_BPF"), ("-perfmon,-sys_admin", "lacks CAP_PERFMON")],
)
def test_without_a_capability_all_kernels_fall_through_to_proc(without, lacks):
    tier, reason = tier_of(prefix=("setpriv", f"--bounding-set={without}"))

    assert tier == "proc"
    assert reason.startswith("bpf and bpf-iter: this process ")
    assert lacks in reason


@pytest.mark.parametrize("answer", [errno.EPERM, errno.ENOSYS])
def test_behind_a_seccomp_filter_all_kernels_fall_through_to_proc(answer):
    tier, reason = tier_of(answer)

    assert tier == "proc"
    assert reason.startswith("bpf and bpf-iter: a seccomp filter keeps bpf(2) from this process")


def test_where_the_kernel_tells_no_types_and_refuses_that_is_the_reason():
    # No kernel of Debian is without: the refusal is a filter's, and the file is hidden.
    prefix = ("unshare", "--mount", "sh", "-c", HIDE_BTF, "sh")

    tier, reason = tier_of(errno.EINVAL, prefix=prefix)

    assert tier == "proc"
    assert reason.startswith("bpf and bpf-iter: the kernel has no type information")


def test_interrupts_are_told_from_threads_by_the_kernels_own_count():
    # Debian's kernels give away where that count is; the loads fall back to an object without it.
    with WakeKernel.open() as kernel:
        kernel.begin(10.0)
        time.sleep(0.1)
        counted = kernel.end()

    assert counted.wakes > 0
    assert counted.knows_interrupts
