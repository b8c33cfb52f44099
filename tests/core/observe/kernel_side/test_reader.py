"""The readers as things that are opened, used for weeks, and closed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from temper_core.bpf import maps
from temper_core.bpf.package import load_object
from temper_core.errors import BpfError
from temper_core.observe.kernel_side.kernel_threads import IterThreads, KernelThreads
from temper_core.observe.kernel_side.layout import (
    CONTROL_BYTES,
    GROUP,
    MOST_GROUPS,
    MOST_PATHS,
    PATH,
    ROW,
    rows_for,
)
from temper_core.observe.thread_rows import ThreadRows
from tests.core.observe.kernel_side.proc_reads import WORKERS

HIDDEN = ("threads: only this pid namespace is visible; set hostPID",)
IN_A_NAMESPACE = """
import sys
from temper_core.observe.kernel_side import kernel_threads
reader = getattr(kernel_threads, sys.argv[1]).open()
rows = reader.snapshot(0)
print(rows.threads_seen, *rows.defects, sep="\\n")
"""


def names_of_descriptors():
    return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - without one more descriptor


def resident_kib():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


@pytest.mark.parametrize("name", ["rows", "groups", "paths", "control"])
def test_both_sides_agree_on_how_things_lie_in_memory(open_tier, name):
    sizes = {"rows": ROW.size, "groups": GROUP.size, "paths": PATH.size, "control": CONTROL_BYTES}
    room = {"rows": rows_for(16), "groups": MOST_GROUPS, "paths": MOST_PATHS, "control": 1}
    open_tier(16).close()

    package = open_tier.kind.__module__.rpartition(".")[0]
    with load_object(
        package, open_tier.kind.object_name, max_entries={"rows": room["rows"]}
    ) as one:
        found = maps.info(one.maps[name])

    assert (found.value_size, found.max_entries) == (sizes[name], room[name])


def test_many_looks_leave_nothing_behind(watched):
    for _ in range(50):
        watched()
    descriptors, memory = names_of_descriptors(), resident_kib()

    for _ in range(200):
        watched()

    assert names_of_descriptors() == descriptors
    assert resident_kib() - memory < 1024


def test_a_closed_reader_has_let_go_of_everything(open_tier):
    open_tier().close()
    before, memory = names_of_descriptors(), resident_kib()

    for _ in range(4):
        reader = open_tier()
        reader.snapshot(0)
        reader.close()
        reader.close()

    assert names_of_descriptors() == before
    assert resident_kib() - memory < 1024


def test_two_readers_do_not_disturb_each_other(open_tier, spawn, tell, settle):
    child = spawn(WORKERS, 1)
    settle(child.pid)
    one, other = open_tier(), open_tier()
    base, _ = one.snapshot(0), other.snapshot(0)
    tell(child, "1 0")
    other.snapshot(base.clock_ns)
    settle(child.pid)

    rows = one.snapshot(base.clock_ns)

    assert child.pid in {row.tid for row in rows.rows}


def test_the_first_look_may_follow_on_the_trial_at_opening(open_tier):
    reader = open_tier()

    rows = reader.snapshot(1)

    assert isinstance(rows, ThreadRows)
    assert os.getpid() in {row.tid for row in rows.rows}


def test_a_refusal_while_looking_is_an_error_of_the_system(open_tier):
    def refuse():
        raise BpfError("cannot run", 11)

    reader = open_tier()
    reader._run = refuse

    with pytest.raises(OSError, match="cannot run") as caught:
        reader.snapshot(0)

    assert (caught.value.errno, caught.value.filename) == (11, f"tier {reader.tier}")


def test_only_the_walk_sees_beyond_its_own_pid_namespace(open_tier):
    open_tier().close()
    command = ["unshare", "--pid", "--fork", sys.executable, "-c", IN_A_NAMESPACE]
    ran = subprocess.run(
        [*command, open_tier.kind.__name__], capture_output=True, text=True, check=False
    )
    if ran.returncode and "unshare" in ran.stderr:
        pytest.skip(ran.stderr)

    seen, *defects = ran.stdout.splitlines()

    is_confined = open_tier.kind is IterThreads
    assert (int(seen) == 1, tuple(defects)) == (is_confined, HIDDEN if is_confined else ())


def test_what_both_tiers_share_is_no_reader_by_itself():
    with pytest.raises(TypeError, match="abstract"):
        KernelThreads(None, 1, "/", 0.0)
