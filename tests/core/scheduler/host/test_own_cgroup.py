"""The cgroup of a process, with and without a cgroup namespace of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from temper_core.scheduler.host.own_cgroup import hidden_path, own_cgroups
from temper_core.scheduler.preflight.node_checks import memory_limit
from temper_core.scheduler.preflight.swap_memory import why_no_room

UNIFIED = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
MIB = 1024 * 1024
POD = "cgroup/kubepods.slice/kubepods-pod1.slice/cri-1.scope"


def below(node):
    return [path.relative_to(node.roots.cgroup) for path in own_cgroups(node.roots)]


def test_a_path_that_the_kernel_shows_counts(node):
    node.put("proc/self/cgroup", "0::/system.slice/temper.service\n")

    assert list(map(str, below(node))) == ["system.slice/temper.service", "system.slice", "."]


def test_a_hidden_path_is_found_by_the_processes_in_it(node):
    node.put(f"{POD}/cgroup.procs", f"1\n{os.getpid()}\n")
    node.put("cgroup/kubepods.slice/kubepods-pod2.slice/cri-2.scope/cgroup.procs", "1\n")

    assert str(below(node)[0]) == POD.removeprefix("cgroup/")


def test_a_process_in_the_root_is_in_the_root(node):
    node.put("cgroup/cgroup.procs", f"1\n{os.getpid()}\n")

    assert list(map(str, below(node))) == ["."]


def test_a_process_that_is_nowhere_counts_as_in_the_root(node):
    node.put(f"{POD}/cgroup.procs", "1\n")

    assert list(map(str, below(node))) == ["."]


def test_the_limit_of_a_hidden_cgroup_bounds_commands_and_swaps(node):
    """As in the chart's pod. The kubelet's OOM killer would end agent and engine together."""
    node.put(f"{POD}/cgroup.procs", f"{os.getpid()}\n")
    node.put(f"{POD}/memory.max", f"{512 * MIB}\n")
    node.put(f"{POD}/memory.current", f"{400 * MIB}\n")

    assert memory_limit(node.roots) == 512 * MIB
    assert "112 MiB left below its limit of memory" in why_no_room(node.roots)


def test_the_limit_of_a_v1_hierarchy_counts_too(node):
    node.put("proc/self/cgroup", "4:memory:/docker/1\n0::/\n")
    node.put("cgroup/memory/docker/1/memory.limit_in_bytes", f"{512 * MIB}\n")
    node.put("cgroup/memory/docker/1/memory.usage_in_bytes", f"{400 * MIB}\n")
    node.put("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")

    assert memory_limit(node.roots) == 512 * MIB
    assert "112 MiB left below its limit of memory" in why_no_room(node.roots)


def test_only_a_private_namespace_has_a_hidden_path(node):
    node.put(f"{POD}/cgroup.procs", f"{os.getpid()}\n")
    assert hidden_path(node.roots) == POD.removeprefix("cgroup/")

    node.put("proc/self/cgroup", "0::/system.slice/temper.service\n")
    assert hidden_path(node.roots) == ""


def test_it_is_found_in_a_real_cgroup_namespace():
    unified = next((root for root in UNIFIED if (root / "cgroup.procs").exists()), None)
    if os.geteuid() != 0 or unified is None:
        pytest.skip("needs root and cgroup v2")
    top = unified / f"temper-own-{os.getpid()}.slice"
    own = top / "pod.slice/agent.scope"
    code = (
        "from pathlib import Path; from temper_core.scheduler.host.roots import Roots;"
        "from temper_core.scheduler.host.own_cgroup import hidden_path, own_cgroups;"
        f"roots = Roots(cgroup=Path('{unified}'));"
        "print(own_cgroups(roots)[0], hidden_path(roots))"
    )
    try:
        own.mkdir(parents=True)
        entering = f'echo $$ > {own}/cgroup.procs && exec unshare -C {sys.executable} -c "{code}"'
        shown = subprocess.run(["sh", "-c", entering], capture_output=True, text=True, check=True)
    finally:
        for directory in (own, own.parent, top):
            directory.rmdir()

    assert shown.stdout.split() == [str(own), str(own.relative_to(unified))]
