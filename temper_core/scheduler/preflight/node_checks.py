"""Preflight checks of the node's software, and of the agent's privileges and memory there."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from temper_core.bpf.access import read_circumstances
from temper_core.kernel_text import kernel_lines
from temper_core.records.checks import Check, failed, ok, unknown, warning
from temper_core.scheduler.host.own_cgroup import own_cgroups
from temper_core.scheduler.host.processes import (
    field_of,
    status_field,
)
from temper_core.scheduler.host.roots import Roots, number_in_table, read_line, read_number
from temper_core.settings import Settings

MIB = 1024 * 1024
SMALLEST_MEMORY_BYTES = 512 * MIB
ENGINE_BYTES = 192 * MIB
"""The memory of scx_layered 1.1.4 once it is loaded."""
CAPABILITIES = {21: "CAP_SYS_ADMIN", 38: "CAP_PERFMON", 39: "CAP_BPF"}
NICE_CAPABILITY = 23
MOST_INDEXED_CGROUPS = 16_384
WATCHES_PER_CGROUP = 2


def privileges(roots: Roots) -> Check:
    """Check the effective capabilities of this process."""
    text = status_field(roots.proc / "self", "CapEff")
    if text is None:
        return unknown("privileges", f"{roots.proc}/self/status lists no capabilities")
    effective = int(text, 16)
    if not read_circumstances(str(roots.proc), str(roots.sys)).is_host_user_namespace:
        return failed(
            "privileges",
            "this process has a user namespace of its own, where its capabilities end",
            "run the agent in the host's user namespace (in Kubernetes hostUsers: true)",
        )
    missing = [name for bit, name in CAPABILITIES.items() if not effective >> bit & 1]
    if missing:
        return failed(
            "privileges",
            f"lacks {', '.join(missing)}",
            "run the agent as root; in Kubernetes with the chart's agent.securityContext",
        )
    if not effective >> NICE_CAPABILITY & 1:
        return warning(
            "privileges",
            "lacks CAP_SYS_NICE: the engine loads at ordinary priority",
            "grant CAP_SYS_NICE, or expect slow starts on a busy node",
        )
    return ok("privileges", "may load BPF schedulers")


def memory(roots: Roots, *, own_engine: int | None = None) -> Check:
    """Check that the engine's maps (about 190 MB, twice that while loading) fit.

    The agent's own running engine, *own_engine*, already holds its part of the memory.
    """
    limit = memory_limit(roots)
    available = available_memory(roots)
    if available is not None and own_engine is not None:
        available += ENGINE_BYTES
    need = f"{SMALLEST_MEMORY_BYTES // MIB} MiB"
    if limit is not None and limit < SMALLEST_MEMORY_BYTES:
        return failed(
            "memory",
            f"this cgroup may use {limit // MIB} MiB; the engine needs {need}",
            f"raise the memory limit of the agent's container or unit to {need} or more",
        )
    if available is None:
        return unknown("memory", f"{roots.proc}/meminfo has no MemAvailable")
    if available < SMALLEST_MEMORY_BYTES:
        return failed(
            "memory",
            f"{available // MIB} MiB are available; the engine needs {need}",
            "free memory on the node",
        )
    return ok("memory", f"{available // MIB} MiB are available")


def static_cpu_manager(roots: Roots, settings: Settings) -> Check:
    """Check that the kubelet's CPU manager pins no containers to CPUs."""
    name, path = "static_cpu_manager", roots.kubelet / "cpu_manager_state"
    text = read_line(path)
    if text is None:
        return _without_cpu_manager_state(name, path, roots)
    try:
        policy = json.loads(text).get("policyName")
    except (ValueError, AttributeError, RecursionError):
        return unknown(name, f"{path} is malformed", "look up the kubelet's cpuManagerPolicy")
    if policy != "static":
        return ok(name, f"the kubelet's CPU manager is {policy!r}")
    detail = "the kubelet's static CPU manager pins containers to CPUs"
    if settings.scheduler.allow_static_cpu_manager:
        return warning(name, detail, "pinned containers break their layer's affinity")
    return failed(
        name,
        detail,
        "set cpuManagerPolicy: none, or [scheduler] allow_static_cpu_manager = true",
    )


def _without_cpu_manager_state(name: str, path: Path, roots: Roots) -> Check:
    """Distinguish a host without a kubelet from one whose kubelet's files are not visible here.

    Every kubelet writes its state under any policy. A pod does not see the kubelet's directory.
    """
    environment = read_line(roots.proc / "self/environ") or ""
    is_in_pod = "KUBERNETES_SERVICE_HOST" in environment
    if is_in_pod or _runs("kubelet", roots):
        return unknown(
            name,
            f"{path} cannot be seen from here, so the kubelet's policy is not known",
            "`temper k8s doctor` asks the kubelet; `pinned_pods` warns once a container is pinned",
        )
    return ok(name, "no kubelet with a static CPU manager")


def _runs(comm: str, roots: Roots) -> bool:
    folders = roots.proc.glob("[0-9]*")
    return any(read_line(folder / "comm", limit=64) == comm for folder in folders)


def resctrl(roots: Roots) -> Check:
    """Check that a mounted resctrl can be read. Engines from 1.0.18 on end otherwise."""
    for mount in _mounts(roots, "resctrl"):
        for monitor in sorted(mount.glob("mon_data/*")):
            if read_line(monitor / "mbm_total_bytes", limit=64) is None:
                return failed(
                    "resctrl",
                    f"{monitor}/mbm_total_bytes cannot be read",
                    f"umount {mount}; the engine ends at its first statistics otherwise",
                )
    return ok("resctrl", "resctrl is not mounted, or can be read")


def cgroup_index(roots: Roots) -> Check:
    """Warn of more cgroups than the engine can index for its regular expressions over them.

    It keeps a map of 16384 cgroups and an inotify watch on each. Other programs (kubelet,
    containerd) need watches too, so the limit should be twice the number of cgroups.
    """
    name = "cgroup_index"
    count = number_in_table(roots.cgroup / "cgroup.stat", "nr_descendants")
    watches = read_number(roots.proc / "sys/fs/inotify/max_user_watches")
    if count is None or watches is None:
        return unknown(name, "the number of cgroups or the limit of inotify watches is not known")
    if count > MOST_INDEXED_CGROUPS:
        return warning(
            name,
            f"{count} cgroups are more than the {MOST_INDEXED_CGROUPS} that the engine can index",
            "remove cgroups that nothing uses; the engine may end over them otherwise",
        )
    if watches < count * WATCHES_PER_CGROUP:
        return warning(
            name,
            f"fs.inotify.max_user_watches is {watches}, for {count} cgroups",
            f"sysctl -w fs.inotify.max_user_watches={MOST_INDEXED_CGROUPS * 8}",
        )
    return ok(name, f"{count} cgroups, {watches} inotify watches")


def runtime_directory(roots: Roots) -> Check:
    """Check that the engine's socket, Temper's own runtime files and its lock can be written."""
    for path in (roots.scx, roots.run, roots.node):
        if not os.access(_existing(path), os.W_OK):
            return failed(
                "runtime_directory",
                f"{path} cannot be written",
                f"mount {path} writable, or run the agent as root",
            )
    return ok("runtime_directory", f"{roots.scx} and {roots.run} can be written")


def own_engine(roots: Roots) -> int | None:
    """Return the process id of the engine that an agent runs here, if it is still alive.

    A killed agent leaves its file behind, and another process may have got the id since. The
    start time distinguishes them.
    """
    pid, _, noted_start = (read_line(roots.engine_pid, limit=64) or "").partition(" ")
    if not pid.isdigit() or not noted_start:
        return None
    state = status_field(roots.proc / pid, "State")
    if state is None or state.startswith(("Z", "X")):
        return None
    return int(pid) if start_of(int(pid), roots.proc) == noted_start else None


def start_of(pid: int, proc: Path = Path("/proc")) -> str:
    """Return the start time of a process in clock ticks since boot, empty if it is gone."""
    _, _, fields = (read_line(proc / str(pid) / "stat") or "").rpartition(")")
    # proc(5): the 22nd field, two of which precede the parenthesis that closes the name
    return next(iter(fields.split()[19:20]), "")


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def available_memory(roots: Roots) -> int | None:
    """Return the bytes that are available without swapping, None if the kernel reports none."""
    kilobytes = field_of(roots.proc / "meminfo", "MemAvailable")
    return int(kilobytes.split()[0]) * 1024 if kilobytes else None


def memory_limit(roots: Roots) -> int | None:
    """Return the tightest limit in bytes from this process's cgroup up to the root.

    ``memory.high`` counts too: beyond it the kernel throttles a load so far that it never ends.
    """
    files = [
        *(path / name for path in own_cgroups(roots) for name in ("memory.max", "memory.high")),
        *(path / "memory.limit_in_bytes" for path in own_cgroups(roots, "memory")),
    ]
    return min((limit for limit in map(read_number, files) if limit is not None), default=None)


def _mounts(roots: Roots, kind: str) -> Iterator[Path]:
    for line in kernel_lines(read_line(roots.proc / "mounts", limit=MIB) or ""):
        fields = line.split(" ")
        if len(fields) > 2 and fields[2] == kind:  # noqa: PLR2004 - device, where, kind
            yield Path(fields[1])
