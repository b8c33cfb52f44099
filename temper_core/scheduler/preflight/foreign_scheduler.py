"""The preflight check for another sched_ext scheduler on the node."""

from collections.abc import Iterator
from pathlib import Path

from temper_core.bpf.maps import map_ids_of, struct_ops_ids
from temper_core.errors import BpfError
from temper_core.records.checks import Check, failed, ok
from temper_core.scheduler.host.kernel import KernelStateWord, SchedExt
from temper_core.scheduler.host.processes import (
    executable_name,
    is_of_initial_users,
    is_setuid,
    status_field,
)
from temper_core.scheduler.host.roots import Roots, number_in_table, read_line

ATTACHING_CAPABILITIES = 1 << 21 | 1 << 39
SIGKILL_BIT = 8
MOUNTS_BYTES = 1024 * 1024
SERVICES = ("scx.service", "scx_loader.service")
CLIENT_OPTIONS = frozenset(
    {"--monitor", "--version", "-V", "--help", "--help-stats", "--print-and-exit", "--example"}
)


def foreign_scheduler(roots: Roots, *, own_engine: int | None = None) -> Check:
    """Check that no other sched_ext scheduler is attached, loads, or is run by a service.

    *own_engine* is the process id of the agent's own engine, which is not foreign. Nor is an
    engine behind a gate (``gate.py``): the next of a warm swap, or one of ``engine check --load``.
    """
    name = "foreign_scheduler"
    remedy = "stop it (systemctl disable --now scx.service scx_loader.service); Temper never does"
    attached = _attached_foreign(roots, is_ours=own_engine is not None)
    if attached is not None:
        return failed(name, f"{attached} is attached and is not Temper's", remedy)
    for pid, comm in scheduler_processes(roots, own_engine):
        if _other_schedulers_load(own_engine, roots.proc):
            return failed(name, f"{comm} runs as process {pid}", remedy)
        break
    for unit in SERVICES:
        if number_in_table(roots.cgroup / "system.slice" / unit / "cgroup.events", "populated"):
            return failed(name, f"{unit} is active, and starts schedulers", remedy)
    if own_engine is not None:
        return ok(name, f"the agent's own engine is attached (process {own_engine})")
    return ok(name, "no other sched_ext scheduler")


def _attached_foreign(roots: Roots, *, is_ours: bool) -> str | None:
    kernel = SchedExt(roots.sched_ext)
    state = kernel.read()
    if is_ours and state.word is KernelStateWord.ENABLED and state.ops and not state.is_layered:
        return state.ops
    return kernel.foreign(ours=is_ours)


def scheduler_processes(roots: Roots, own: int | None) -> Iterator[tuple[int, str]]:
    """Find processes that are sched_ext schedulers or their loader. Mere clients are left out."""
    for folder in roots.proc.glob("[0-9]*"):
        comm = read_line(folder / "comm", limit=64) or ""
        program = executable_name(folder) or comm
        if not (comm.startswith("scx_") and program.startswith("scx_")) or folder.name == str(own):
            continue
        if not _may_attach(folder):
            continue  # before the command line, whose reader such a process could block for good
        arguments = (read_line(folder / "cmdline") or "").split("\0")
        is_client = CLIENT_OPTIONS.intersection(arguments) or arguments == [""]
        if not (is_client or _is_dying(folder) or _is_gated(folder, roots)):
            yield int(folder.name), comm


def _may_attach(folder: Path) -> bool:
    """Whether a process has the rights to attach a scheduler, or they are not known.

    bpf(2) needs CAP_BPF, or CAP_SYS_ADMIN, in the initial user namespace. This process is in it,
    or may not enforce.
    """
    effective = status_field(folder, "CapEff")
    if effective is not None and not int(effective, 16) & ATTACHING_CAPABILITIES:
        return False
    return is_of_initial_users(folder) and not is_setuid(folder)


def _other_schedulers_load(own: int | None, proc: Path) -> bool:
    """Whether the kernel has objects of BPF schedulers besides the engine *own*, or may have.

    A process that was not given the rights can pass for a scheduler, but has no such objects.
    """
    try:
        loaded = struct_ops_ids()
    except BpfError:
        return True
    return not loaded <= set(map_ids_of(own, proc) if own is not None else ())


def _is_dying(folder: Path) -> bool:
    """Whether a process has a pending SIGKILL, so that it runs no more user code."""
    pending = status_field(folder, "SigPnd")
    return pending is not None and bool(int(pending, 16) >> SIGKILL_BIT & 1)


def _is_gated(folder: Path, roots: Roots) -> bool:
    """Whether the process of *folder* has a mount over the kernel's state file."""
    mounts = read_line(folder / "mountinfo", limit=MOUNTS_BYTES) or ""
    return f" {roots.sched_ext / 'state'} " in mounts
