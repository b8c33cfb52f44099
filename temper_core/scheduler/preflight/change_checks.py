"""Checks of steering by hints and of the warm swap, which make changes cheap. Neither ever fails.

Without steering the agent works in static mode. Without the warm swap it restarts the engine cold.
The checks make trials of tens of milliseconds, so ``temper doctor`` runs them and preflight does
not.
"""

import ctypes
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from temper_core.bpf import access
from temper_core.bpf.file_system import MOUNT, is_replaceable
from temper_core.directory_tree import directories_below, nearest_existing
from temper_core.records.checks import Check, ok, warning
from temper_core.scheduler import pre_exec_script
from temper_core.scheduler.host.roots import Roots, read_line
from temper_core.scheduler.preflight.node_checks import MIB, available_memory, memory_limit
from temper_core.scheduler.preflight.swap_memory import why_no_room
from temper_core.settings import Settings

BPF_FS_MAGIC = 0xCAFE4A11
"""``BPF_FS_MAGIC`` (linux/magic.h), the first word of statfs(2)."""
FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""``PROC_PID_INIT_INO`` (linux/proc_ns.h)."""
TWO_ENGINES_BYTES = 704 * MIB
"""512 MiB for a loading engine and the agent, 192 MiB for the engine that runs beside it."""
TRIAL_S = 10.0
MOST_CGROUPS = 4096


def steering(roots: Roots, settings: Settings) -> Check:
    """Check whether threads can be steered by hints here, or why the agent uses static mode."""
    name, scheduler = "steering", settings.scheduler
    if scheduler.steering == "static":
        return ok(name, "static mode, as set by [scheduler] steering")
    namespace = _link(roots.proc / "self/ns/pid")
    if namespace not in ("", FIRST_PID_NAMESPACE):
        return warning(
            name,
            "static mode: this process has a pid namespace of its own",
            "run the agent in the host's (in Kubernetes hostPID: true)",
        )
    refusal = _pin_refusal(Path(scheduler.steering_pin).parent)
    if refusal is not None:
        return warning(name, f"static mode: {refusal[0]}", refusal[1])
    probe = access.probe(str(roots.proc), str(roots.sys))
    if not probe.is_allowed:
        return warning(name, f"static mode: {probe.reason}", probe.remedy)
    return ok(name, f"by hints; the map is pinned at {scheduler.steering_pin}")


def warm_swap(roots: Roots, settings: Settings, *, own_engine: int | None = None) -> Check:
    """Check whether the next engine can load beside the running one.

    *own_engine* is the process id of the running engine, if any.
    """
    name = "warm_swap"
    if not settings.scheduler.warm_swap:
        return ok(name, "cold restarts, as set by [scheduler] warm_swap")
    short = why_no_room(roots) if own_engine is not None else _short_of_memory(roots)
    if short:
        remedy = "raise the memory limit of the agent's unit or container to 768 MiB, or free some"
        return warning(name, f"cold restarts: {short}", remedy)
    refusal = _gate_refusal(roots)
    if refusal:
        return warning(
            name,
            f"cold restarts: {refusal}",
            "run the agent as root: it needs CAP_SYS_ADMIN for a mount namespace, "
            "and no AppArmor or seccomp profile that forbids mount(2)",
        )
    return ok(name, "there is room for a second engine while one runs")


def pinned_pods(roots: Roots) -> Check:
    """Warn of pods whose cgroups are restricted to some CPUs: layers cannot give them others.

    With the cgroupfs driver the kubelet writes all CPUs into the cgroup above all pods.
    """
    name, pinned, total = "pinned_pods", 0, 0
    online = read_line(roots.sys / "devices/system/cpu/online", limit=4096)
    for path in islice(_cpusets(roots.cgroup), MOST_CGROUPS):
        total += 1
        pinned += read_line(path, limit=4096) not in (None, "", online)
    if not pinned:
        return ok(name, "no pod's cgroup is restricted to some CPUs")
    return warning(
        name,
        f"{pinned} of {total} cgroups of pods are restricted to some CPUs by cpuset.cpus",
        "their threads break the affinity of their layers and are served last on busy CPUs: clear "
        "cpuset.cpus, or leave this node to the stock scheduler",
    )


def _pin_refusal(folder: Path) -> tuple[str, str] | None:
    """Return why the map of hints cannot be pinned in *folder* and the remedy, or None."""
    try:
        existing = nearest_existing(folder)
    except OSError as error:  # a BPF file system that systemd mounted admits only root
        return f"{error.filename}: {error.strerror}", "run the agent as root"
    if _file_system(existing) != BPF_FS_MAGIC:
        return f"{existing} is not on a BPF file system", MOUNT
    if os.statvfs(existing).f_flag & os.ST_RDONLY:
        return f"{existing} is read-only", "mount -o remount,rw /sys/fs/bpf"
    if not os.access(existing, os.W_OK):
        return f"{existing} cannot be written", "run the agent as root"
    status = folder.lstat() if existing == folder else None
    is_ours = status is None or (stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid())
    if is_ours or is_replaceable(folder):
        return None
    return (
        f"{folder} is not a directory of this user, so others could change hints",
        "remove it, or set [scheduler] steering_pin to another directory",
    )


def _file_system(path: Path) -> int:
    """Return the magic number of the file system that *path* is on, 0 if it is not known."""
    buffer = ctypes.create_string_buffer(512)  # struct statfs has 120 bytes on 64-bit machines
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer) != 0:
        return 0
    return ctypes.c_long.from_buffer(buffer).value


def _short_of_memory(roots: Roots) -> str:
    """Return what is missing for two engines while none runs, empty if nothing is."""
    need = f"two engines and the agent need {TWO_ENGINES_BYTES // MIB} MiB"
    limit, available = memory_limit(roots), available_memory(roots)
    if limit is not None and limit < TWO_ENGINES_BYTES:
        return f"this cgroup may use {limit // MIB} MiB; {need}"
    if available is not None and available < TWO_ENGINES_BYTES:
        return f"{available // MIB} MiB are available; {need}"
    return ""


def _gate_refusal(roots: Roots) -> str:
    """Mount a file over another in a child process, as the gate of a swap is mounted."""
    state = roots.sched_ext / "state"
    target = state if state.exists() else roots.proc / "self/status"
    launcher = [sys.executable, "-I", "-S", pre_exec_script.__file__]
    trial = [*launcher, str(os.getpid()), "0", "/dev/null", str(target), sys.executable, "-V"]
    try:
        run = subprocess.run(  # noqa: S603 - a fixed program
            trial, check=False, capture_output=True, text=True, timeout=TRIAL_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the trial of the gate failed: {error}"
    if run.returncode == 0:
        return ""
    return run.stderr.strip().removeprefix("temper: ") or f"the gate's exit code {run.returncode}"


def _cpusets(root: Path) -> Iterator[Path]:
    """Find the cpuset file of every cgroup of a pod or container in the kubelet's hierarchy."""
    for folder in sorted(root.glob("kubepods*")):
        files = (Path(directory, "cpuset.cpus") for directory in directories_below(folder))
        yield from (file for file in files if file.exists())


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
