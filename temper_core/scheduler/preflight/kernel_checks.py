"""Preflight checks of the kernel and its CPUs."""

import os
import re
from pathlib import Path

from temper_core.records.checks import Check, failed, ok, unknown, warning
from temper_core.scheduler.host.roots import Roots, read_line
from temper_core.scheduler.preflight.kernel_types import DECLARATION_TAG, ENUM, ENUM64, KernelTypes

LARGEST_CPU_COUNT = 512
LARGEST_NODE_COUNT, LARGEST_CACHE_COUNT = 32, 64
FIRST_WITH_IMPLICIT_KFUNC_ARGUMENTS = (7, 0)
FIRST_WITHOUT_THE_CPUSET_TRAP = (7, 1)
UNPROVEN = ((6, 13),)
"""Kernels that scx_layered's own tests leave out, because it does not verify there."""
ISOLATION_FLAGS = frozenset({"nohz", "domain", "managed_irq"})


def sched_ext(roots: Roots) -> Check:
    """Check that the kernel was built with CONFIG_SCHED_CLASS_EXT (Linux 6.12 and later)."""
    name = "sched_ext"
    if roots.sched_ext.is_dir():
        return ok(name, "the kernel supports sched_ext")
    return failed(
        name,
        f"{roots.sched_ext} is missing: kernel {release(roots)} has no sched_ext",
        "boot a kernel of 6.12 or later with CONFIG_SCHED_CLASS_EXT=y; until then Temper observes",
    )


def btf(roots: Roots) -> Check:
    """Check that the kernel's BTF is readable. No BPF scheduler loads without it."""
    path = roots.sys / "kernel/btf/vmlinux"
    if os.access(path, os.R_OK):
        return ok("btf", f"{path} is readable")
    return failed(
        "btf",
        f"{path} cannot be read",
        "use a kernel with CONFIG_DEBUG_INFO_BTF=y; in a container mount the host's /sys",
    )


def kernel_version(roots: Roots) -> Check:
    """Warn of kernels that have sched_ext but that the engine's authors no longer test."""
    name, uname = "kernel_version", release(roots)
    series = version(roots)
    if series is None:
        return unknown(name, "the kernel's release is not known")
    if series in UNPROVEN:
        return warning(
            name,
            f"kernel {uname}: the engine's own tests leave this series out",
            "use 6.18 or another long-term kernel, if the engine fails to load here",
        )
    return ok(name, f"kernel {uname}")


def btf_prototypes(roots: Roots) -> Check:
    """Warn of kernels from 7.0 on whose pahole wrote kfunc prototypes that the engine refuses.

    From 1.26 on, pahole marks kfuncs by a tag. Without the tag the kernel's build leaves the
    implicit argument in their prototypes.
    """
    name, series = "btf_prototypes", version(roots)
    if series is None:
        return unknown(name, "the kernel's release is not known")
    if series < FIRST_WITH_IMPLICIT_KFUNC_ARGUMENTS:
        return ok(name, f"kernel {release(roots)} has no implicit kfunc arguments (7.0 and later)")
    types = _types(roots)
    if types is not None and types.has("bpf_kfunc", DECLARATION_TAG):
        return ok(name, "the kernel's BTF marks kfuncs")
    return warning(
        name,
        f"kernel {release(roots)} was built by a pahole older than 1.26, as its BTF shows",
        "if the engine ends with 'malformed scx kfunc prototype(s)', use a kernel whose BTF was "
        "made by pahole 1.26 or later",
    )


def btf_enums(roots: Roots) -> Check:
    """Warn of a kernel's BTF that cuts 64-bit enumerators, so that dispatch queues get wrong ids.

    Seen with GKE's COS: engines before 1.1.3 are ejected at once ("non-existent DSQ 0x2").
    """
    name, types = "btf_enums", _types(roots)
    if types is None:
        return unknown(name, "the kernel's BTF cannot be read")
    is_cut = types.has("scx_dsq_id_flags", ENUM) and not types.has("scx_dsq_id_flags", ENUM64)
    if not is_cut:
        return ok(name, "the kernel's BTF keeps 64-bit constants")
    return warning(
        name,
        "the kernel's BTF has no 64-bit enumerations: sched_ext's constants are cut to 32 bits",
        "use scx_layered 1.1.4 or later; older ones end with 'non-existent DSQ 0x2'",
    )


def bpf_jit(roots: Roots) -> Check:
    """Check that the BPF JIT is on. BPF programs cannot call kernel functions without it."""
    name, path = "bpf_jit", roots.proc / "sys/net/core/bpf_jit_enable"
    if read_line(path, limit=16) != "0":  # missing in a separate network namespace
        return ok(name, "BPF's compiler is not switched off")
    return failed(name, f"{path} is 0", "sysctl -w net.core.bpf_jit_enable=1")


def cgroup_v2(roots: Roots) -> Check:
    """Check that cgroup v2 is mounted. The engine sees no thread's cgroup otherwise."""
    name = "cgroup_v2"
    if (roots.cgroup / "cgroup.controllers").exists():
        return ok(name, f"{roots.cgroup} is unified")
    is_hybrid = (roots.cgroup / "unified/cgroup.controllers").exists()
    hierarchy = "hybrid (v1 with v2 beside it)" if is_hybrid else "v1, or not mounted here"
    return failed(
        name,
        f"cgroups at {roots.cgroup} are {hierarchy}",
        "boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all; "
        "in a container mount the host's /sys/fs/cgroup",
    )


def kernel_config(roots: Roots) -> Check:
    """Check that libbpf finds the kernel's configuration. Without it the load fails silently."""
    candidates = (roots.proc / "config.gz", roots.boot / f"config-{release(roots)}")
    for path in candidates:
        if os.access(path, os.R_OK):
            return ok("kernel_config", f"{path} is readable")
    elsewhere = _config_elsewhere(roots)
    remedy = (
        f"cp {elsewhere} {candidates[1]} (libbpf does not look there)"
        if elsewhere is not None
        else f"put the kernel's configuration at {candidates[1]}, or mount the host's /boot into "
        "the container"
    )
    problem = f"neither {candidates[0]} nor {candidates[1]} can be read"
    return failed("kernel_config", problem, remedy)


def _config_elsewhere(roots: Roots) -> Path | None:
    """Find the configuration below /lib/modules: Debian from 7.x on, and Fedora."""
    root = roots.boot.parent
    folders = [root / parent / release(roots) for parent in ("usr/lib/modules", "lib/modules")]
    return next((path / "config" for path in folders if os.access(path / "config", os.R_OK)), None)


def cpus_online(roots: Roots) -> Check:
    """Check that every possible CPU is online. The engine panics over possible CPUs offline."""
    name = "cpus_online"
    possible, online = _cpus(roots, "possible"), _cpus(roots, "online")
    if not possible or not online:
        return unknown(name, f"{roots.sys}/devices/system/cpu lists no possible or online CPUs")
    absent = sorted(set(possible) - set(online))
    if not absent:
        return ok(name, f"all {len(online)} possible CPUs are online")
    return failed(
        name,
        f"{len(absent)} possible CPUs are not online: {cpu_list(absent)}",
        f"bring them online, or boot with possible_cpus={len(online)} (a VM: no CPU hotplug slots)",
    )


def cpus_contiguous(roots: Roots) -> Check:
    """Check that CPU ids run from 0 without holes, as the engine assumes."""
    online = _cpus(roots, "online")
    if not online:
        return unknown("cpus_contiguous", "the online CPUs are not known")
    if list(online) == list(range(len(online))):
        return ok("cpus_contiguous", f"CPU ids are 0 to {len(online) - 1}")
    return failed(
        "cpus_contiguous",
        f"CPU ids have holes: {cpu_list(online)}",
        "bring the missing CPUs online or take the last ones away instead",
    )


def cpu_count(roots: Roots) -> Check:
    """Check that the number of CPUs is within the engine's limit."""
    count = len(_cpus(roots, "online"))
    if count <= LARGEST_CPU_COUNT:
        return ok("cpu_count", f"{count} CPUs, at most {LARGEST_CPU_COUNT}")
    return failed(
        "cpu_count",
        f"{count} CPUs are more than the engine's {LARGEST_CPU_COUNT}",
        f"boot with nr_cpus={LARGEST_CPU_COUNT}, or leave this node to the stock scheduler",
    )


def topology_size(roots: Roots) -> Check:
    """Check that the NUMA nodes and last-level caches are within the engine's limits.

    The engine counts the caches of level 3 by node and socket, and those of level 2 where a CPU
    has no other (scx_utils 1.1.4, topology.rs). So a virtual machine that shows no cache of level 3
    has one for each core. Its arrays have a fixed size (scx_layered 1.1.4, bpf/intf.h).
    """
    name = "topology_size"
    nodes = tuple((roots.sys / "devices/system/node").glob("node[0-9]*"))
    caches = {_last_level_cache(roots, cpu) for cpu in _cpus(roots, "online")}
    counts = f"{len(nodes)} NUMA nodes and {len(caches)} last-level caches"
    limits = f"{LARGEST_NODE_COUNT} and {LARGEST_CACHE_COUNT}"
    if len(nodes) <= LARGEST_NODE_COUNT and len(caches) <= LARGEST_CACHE_COUNT:
        return ok(name, f"{counts}, at most {limits}")
    return failed(
        name,
        f"{counts} are more than the engine's {limits}",
        "have the virtual machine show the host's caches, boot with numa=off or fewer nodes by the "
        "firmware, or leave this node to the stock scheduler",
    )


def _last_level_cache(roots: Roots, cpu: int) -> tuple[str, ...]:
    """Return what tells the engine's cache of a CPU from others."""
    own = roots.sys / f"devices/system/cpu/cpu{cpu}"
    socket = read_line(own / "topology/physical_package_id") or ""
    node = next((path.name for path in own.glob("node[0-9]*")), "")
    for index in (3, 2):
        shared = read_line(own / f"cache/index{index}/shared_cpu_list")
        if shared is not None:
            return node, socket, shared
    return node, socket


def isolcpus(roots: Roots) -> Check:
    """Check that no CPU is isolated from the scheduler. The kernel then refuses to attach."""
    for word in (read_line(roots.proc / "cmdline") or "").split():
        name, _, value = word.partition("=")
        flags = ISOLATION_FLAGS.intersection(value.split(","))
        if name == "isolcpus" and (not flags or "domain" in flags):
            return failed(
                "isolcpus",
                f"the kernel was booted with {word}",
                "boot without isolcpus=; sched_ext is not compatible with its domain isolation",
            )
    return _isolated_partitions(roots)


def _isolated_partitions(roots: Roots) -> Check:
    """Check for CPUs that cpusets have isolated at run time.

    Before 7.1 the kernel refuses the engine if ``isolated`` lists a CPU. From 7.0 on that file
    includes the CPUs of isolated partitions (HK_TYPE_DOMAIN).
    """
    housekeeping = read_line(roots.sys / "devices/system/cpu/isolated")
    partitions = read_line(roots.cgroup / "cpuset.cpus.isolated")
    if not housekeeping and not partitions:
        return ok("isolcpus", "no CPU is isolated")
    detail = f"CPUs {housekeeping or partitions} are isolated by a cpuset partition"
    is_past = (version(roots) or (0, 0)) >= FIRST_WITHOUT_THE_CPUSET_TRAP
    if housekeeping and not is_past:
        return failed(
            "isolcpus",
            detail,
            "echo member > cpuset.cpus.partition in that cgroup, or use Linux 7.1 or later",
        )
    return warning(
        "isolcpus",
        detail,
        "layers own these CPUs, though their threads cannot run there, and before Linux 7.1 the "
        "engine may not attach: echo member > cpuset.cpus.partition in that cgroup",
    )


def lockdown(roots: Roots) -> Check:
    """Check that kernel lockdown allows BPF tracing."""
    text = read_line(roots.sys / "kernel/security/lockdown") or ""
    if "[confidentiality]" not in text:
        return ok("lockdown", "BPF is not locked down")
    return failed(
        "lockdown",
        "the kernel is locked down for confidentiality, which forbids BPF tracing",
        "boot with lockdown=integrity or lockdown=none",
    )


def release(roots: Roots) -> str:
    """Return the kernel's release, as ``uname -r`` prints it."""
    return read_line(roots.proc / "sys/kernel/osrelease") or os.uname().release


def version(roots: Roots) -> tuple[int, int] | None:
    """Return the first two numbers of the kernel's release."""
    match = re.match(r"(\d{1,4})\.(\d{1,4})", release(roots), re.ASCII)
    return (int(match[1]), int(match[2])) if match else None


def cpu_list(cpus: list[int] | tuple[int, ...]) -> str:
    """Write CPU ids as the kernel does: ``0-3,8``."""
    ranges: list[list[int]] = []
    for cpu in cpus:
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def _cpus(roots: Roots, name: str) -> tuple[int, ...]:
    """Read a list of CPUs (``0-3,8``). Empty if it is unreadable or malformed."""
    text = read_line(roots.sys / "devices/system/cpu" / name) or ""
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part)
        if match is None:
            return ()
        first = int(match[1])
        cpus.extend(range(first, int(match[2] or first) + 1))
    return tuple(cpus)


def _types(roots: Roots) -> KernelTypes | None:
    try:
        return KernelTypes.read((roots.sys / "kernel/btf/vmlinux").read_bytes())
    except OSError:
        return None
