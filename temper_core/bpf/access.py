"""Whether this process may use BPF here, and if not, the cause and its remedy.

The kernel answers most refusals with EPERM or EINVAL. The process's state in /proc and the
kernel's features in /sys distinguish the causes.
"""

import errno
import platform
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from attrs import frozen

from temper_core.bpf.package import load_object
from temper_core.bpf.system_call import NUMBERS
from temper_core.errors import BpfError
from temper_core.kernel_text import kernel_lines

OLDEST_KERNEL = (6, 7)
"""The first kernel with "bpf: Introduce task open coded iterator kfuncs"."""
_CAP_SYS_ADMIN = 1 << 21
_CAP_PERFMON = 1 << 38
_CAP_BPF = 1 << 39
_SECCOMP_FILTER = 2
_ALL_IDS = ["0", "0", "4294967295"]
_LACKS_A_PART = frozenset({errno.ENOENT, errno.ESRCH, errno.E2BIG, errno.EINVAL, errno.EOPNOTSUPP})
_DENIED = frozenset({errno.EPERM, errno.EACCES})


class AccessCode(StrEnum):
    """Why BPF can or cannot be used. The values are stable."""

    ALLOWED = "allowed"
    MACHINE = "machine"
    NO_SYSTEM_CALL = "no_system_call"
    SECCOMP = "seccomp"
    USER_NAMESPACE = "user_namespace"
    NO_CAP_BPF = "no_cap_bpf"
    NO_CAP_PERFMON = "no_cap_perfmon"
    LOCKDOWN = "lockdown"
    NO_BTF = "no_btf"
    KERNEL_TOO_OLD = "kernel_too_old"
    REFUSED = "refused"
    DAMAGED = "damaged"


_WORDS: Mapping[AccessCode, tuple[str, str]] = {
    AccessCode.ALLOWED: ("BPF objects load, run and attach", ""),
    AccessCode.MACHINE: (
        "bpf(2) is known for x86-64 and arm64 only",
        "run on one of these, or without BPF",
    ),
    AccessCode.NO_SYSTEM_CALL: (
        "this kernel has no bpf(2)",
        "use a kernel built with CONFIG_BPF_SYSCALL; a sandbox such as gVisor has none",
    ),
    AccessCode.SECCOMP: (
        "a seccomp filter keeps bpf(2) from this process, which has the capabilities for it",
        "allow bpf(2) in the container's seccomp profile, or use the runtime's default profile",
    ),
    AccessCode.USER_NAMESPACE: (
        "the capabilities of this process count only inside its own user namespace",
        "run it in the host's user namespace (in Kubernetes hostUsers: true)",
    ),
    AccessCode.NO_CAP_BPF: (
        "this process lacks CAP_BPF",
        "run it as root, or give it the capabilities BPF and PERFMON",
    ),
    AccessCode.NO_CAP_PERFMON: (
        "this process has CAP_BPF but lacks CAP_PERFMON",
        "give it the capability PERFMON as well",
    ),
    AccessCode.LOCKDOWN: (
        "the kernel is locked down (confidentiality): no BPF program may read kernel memory",
        "boot with lockdown=integrity or less, or go without BPF",
    ),
    AccessCode.NO_BTF: (
        "the kernel has no type information: /sys/kernel/btf/vmlinux is missing",
        "use a kernel built with CONFIG_DEBUG_INFO_BTF, as those of all distributions are",
    ),
    AccessCode.KERNEL_TOO_OLD: (
        "this kernel lacks a part of BPF that is needed",
        "use Linux 6.7 or newer; sched_ext needs 6.12 anyway",
    ),
    AccessCode.REFUSED: (
        "the kernel refused the BPF object",
        "look in the audit log for a denial of bpf by SELinux or AppArmor; otherwise report it",
    ),
    AccessCode.DAMAGED: (
        "the BPF object itself is unusable",
        "install the package that ships it again",
    ),
}


@frozen
class Access:
    """The result: a stable code, the reason, and the remedy (empty if none is needed)."""

    code: AccessCode
    reason: str
    remedy: str

    @property
    def is_allowed(self) -> bool:
        """Whether BPF can be used."""
        return self.code is AccessCode.ALLOWED


@frozen
class BpfPrivileges:
    """The facts that decide on BPF, of this process and of the kernel.

    ``capabilities`` is the mask of effective ones, ``seccomp`` the mode of the filter.
    ``lockdown`` is the mode in force, empty if unknown.
    """

    capabilities: int
    seccomp: int
    is_host_user_namespace: bool
    has_btf: bool
    lockdown: str
    kernel: tuple[int, int]
    machine: str


def probe(proc_root: str = "/proc", sys_root: str = "/sys") -> Access:
    """Load, run and attach a small BPF object, and close it again. Takes 10 to 20 ms."""
    try:
        with load_object("temper_core.bpf", "probe") as loaded:
            loaded.run("count_threads")
            loaded.attach("count_fork")
    except BpfError as error:
        return explain_bpf_error(error, proc_root, sys_root)
    return _access(AccessCode.ALLOWED)


def explain_bpf_error(error: BpfError, proc_root: str = "/proc", sys_root: str = "/sys") -> Access:
    """Return the cause of this process's failed load, run or attach of any object."""
    code = classify(error.errno, read_circumstances(proc_root, sys_root))
    last_words = error.log.splitlines()[-1:] if code is AccessCode.REFUSED else []
    return _access(code, str(error), *last_words)


def read_circumstances(proc_root: str = "/proc", sys_root: str = "/sys") -> BpfPrivileges:
    """Read the facts that decide on BPF. An unreadable fact counts as no obstacle."""
    status = dict(
        line.split(":", 1) for line in kernel_lines(_text(proc_root, "self/status")) if ":" in line
    )
    lockdown = re.search(r"\[(\w+)\]", _text(sys_root, "kernel/security/lockdown"))
    release = re.match(r"(\d+)\.(\d+)", _text(proc_root, "sys/kernel/osrelease"))
    return BpfPrivileges(
        capabilities=int(status.get("CapEff", "").strip() or "0", 16),
        seccomp=int(status.get("Seccomp", "").strip() or "0"),
        is_host_user_namespace=_text(proc_root, "self/uid_map").split() in ([], _ALL_IDS),
        has_btf=Path(sys_root, "kernel/btf/vmlinux").exists(),
        lockdown=lockdown[1] if lockdown else "",
        kernel=(int(release[1]), int(release[2])) if release else OLDEST_KERNEL,
        machine=platform.machine(),
    )


def classify(reason: int, privileges: BpfPrivileges) -> AccessCode:
    """Return the cause of the kernel's error number *reason*, 0 for an error of the object."""
    if privileges.machine not in NUMBERS:
        return AccessCode.MACHINE
    if reason == 0:
        return AccessCode.DAMAGED
    if reason == errno.ENOSYS:
        is_filtered = privileges.seccomp == _SECCOMP_FILTER
        return AccessCode.SECCOMP if is_filtered else AccessCode.NO_SYSTEM_CALL
    if reason in _DENIED:
        return _missing_right(privileges) or _who_denied(reason, privileges)
    if reason in _LACKS_A_PART:
        return _missing_right(privileges) or _what_lacks(reason, privileges)
    return AccessCode.REFUSED


def _missing_right(privileges: BpfPrivileges) -> AccessCode | None:
    if privileges.capabilities & _CAP_SYS_ADMIN:
        return None
    if not privileges.capabilities & _CAP_BPF:
        return AccessCode.NO_CAP_BPF
    # Without CAP_PERFMON the verifier answers EINVAL, not EPERM.
    return None if privileges.capabilities & _CAP_PERFMON else AccessCode.NO_CAP_PERFMON


def _who_denied(reason: int, privileges: BpfPrivileges) -> AccessCode:
    if not privileges.is_host_user_namespace:
        return AccessCode.USER_NAMESPACE
    if privileges.lockdown == "confidentiality":
        return AccessCode.LOCKDOWN
    # The verifier's own refusals are EACCES, which no filter is known to use.
    is_filtered = reason == errno.EPERM and privileges.seccomp == _SECCOMP_FILTER
    return AccessCode.SECCOMP if is_filtered else AccessCode.REFUSED


def _what_lacks(reason: int, privileges: BpfPrivileges) -> AccessCode:
    if not privileges.has_btf:
        return AccessCode.NO_BTF
    if privileges.lockdown == "confidentiality":
        return AccessCode.LOCKDOWN
    is_old = reason != errno.EINVAL or privileges.kernel < OLDEST_KERNEL
    return AccessCode.KERNEL_TOO_OLD if is_old else AccessCode.REFUSED


def _access(code: AccessCode, *causes: str) -> Access:
    reason, remedy = _WORDS[code]
    details = "; ".join(cause for cause in causes if cause)
    return Access(code, f"{reason} ({details})" if details else reason, remedy)


def _text(root: str, path: str) -> str:
    try:
        return Path(root, path).read_text(errors="replace")
    except OSError:
        return ""
