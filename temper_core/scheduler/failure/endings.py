"""The ways an engine can end, the remedy for each, and the diagnosis record."""

from collections.abc import Mapping
from enum import StrEnum

from attrs import Factory, field, frozen


class EndKind(StrEnum):
    """How an engine ended: the label values of ``temper_ejections_total{kind}``."""

    CONFIG = "config"
    USAGE = "usage"
    VERIFIER_TOO_LARGE = "verifier_too_large"
    VERIFIER_REFUSED = "verifier_refused"
    KCONFIG_MISSING = "kconfig_missing"
    BTF_MISMATCH = "btf_mismatch"
    BTF_TRUNCATED = "btf_truncated"
    KERNEL_UNSUPPORTED = "kernel_unsupported"
    NOT_PERMITTED = "not_permitted"
    FOREIGN_SCHEDULER = "foreign_scheduler"
    STALL = "stall"
    RT_HOG = "rt_hog"
    LOCKUP = "lockup"
    SYSRQ = "sysrq"
    HOTPLUG = "hotplug"
    PERF_TARGET = "perf_target"
    NO_LAYER = "no_layer"
    BPF_ERROR = "bpf_error"
    RUNTIME_ERROR = "runtime_error"
    UNREGISTERED = "unregistered"
    PANIC = "panic"
    TOO_MANY_CGROUPS = "too_many_cgroups"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED = "killed"
    TERMINATED = "terminated"
    LAUNCH_FAILED = "launch_failed"
    START_TIMEOUT = "start_timeout"
    HUNG = "hung"
    UNKNOWN = "unknown"


DECISIVE = frozenset({EndKind.CONFIG, EndKind.USAGE, EndKind.VERIFIER_TOO_LARGE})

_REPORT = "report it with the plan (/config) and this message"
REMEDIES: Mapping[EndKind, str] = {
    EndKind.CONFIG: f"{_REPORT}: the check before the start should have caught it",
    EndKind.USAGE: "install a version of scx_layered that Temper knows (temper doctor)",
    EndKind.VERIFIER_TOO_LARGE: f"use fewer kinds of layer; where Temper made the plan, {_REPORT}",
    EndKind.VERIFIER_REFUSED: "use a kernel and a version of scx_layered that match",
    EndKind.KCONFIG_MISSING: "see 'kernel_config' in temper doctor",
    EndKind.BTF_MISMATCH: "use a kernel whose BTF was made by pahole 1.26 or later",
    EndKind.BTF_TRUNCATED: "use scx_layered 1.1.4 or later, or a kernel whose BTF has enum64",
    EndKind.KERNEL_UNSUPPORTED: "boot Linux 6.12 or later without isolcpus=; see temper doctor",
    EndKind.NOT_PERMITTED: "run the agent as root; see 'privileges' in temper doctor",
    EndKind.FOREIGN_SCHEDULER: "stop the other scheduler (systemctl disable --now scx.service)",
    EndKind.STALL: "look at what keeps the named CPU, and at the load of that thread's layer",
    EndKind.RT_HOG: "end that real-time thread, let it sleep, or keep it to a CPU of its own; "
    "from Linux 7.0 on the kernel leaves the others 5 % beside it",
    EndKind.LOCKUP: "look in the kernel's log for what kept the CPU: a driver, a VM without CPU",
    EndKind.SYSRQ: "find out what used SysRq-S; nothing is wrong with the engine",
    EndKind.HOTPLUG: "bring the CPU back online: the engine needs every possible CPU",
    EndKind.PERF_TARGET: "give no layer a 'perf' above 1024",
    EndKind.NO_LAYER: f"{_REPORT}: its last layer must take every thread",
    EndKind.BPF_ERROR: f"{_REPORT}; a newer scx_layered may have it fixed",
    EndKind.RUNTIME_ERROR: f"{_REPORT}; a newer scx_layered may have it fixed",
    EndKind.UNREGISTERED: "nothing, if a CPU came or went; otherwise look in the kernel's log",
    EndKind.PANIC: f"{_REPORT}; see temper doctor for what makes the engine panic",
    EndKind.TOO_MANY_CGROUPS: "remove cgroups that nothing uses; see temper doctor",
    EndKind.OUT_OF_MEMORY: "raise the memory limit of the agent's unit or container (512 MiB)",
    EndKind.KILLED: "look for the OOM killer in the kernel's log, or for another killer",
    EndKind.TERMINATED: "find out what ended it: only Temper should stop the engine",
    EndKind.LAUNCH_FAILED: "see 'engine' and 'runtime_directory' in temper doctor",
    EndKind.START_TIMEOUT: "raise [scheduler] start_deadline_s on a slow or busy machine",
    EndKind.HUNG: "look whether the engine was stopped (SIGSTOP) or gets no CPU",
    EndKind.UNKNOWN: f"{_REPORT}: Temper has no diagnosis of this end",
}


def _remedy_of(diagnosis: "Diagnosis") -> str:
    return REMEDIES.get(diagnosis.kind, "")


@frozen
class Diagnosis:
    """Why an engine ended: ``summary`` is one line, ``detail`` the evidence.

    ``remedy`` is one line too, by default that of the kind.
    """

    kind: EndKind
    summary: str
    detail: str = ""
    remedy: str = field(default=Factory(_remedy_of, takes_self=True))

    @property
    def blames_the_plan(self) -> bool:
        """Whether the same plan would fail again at every attempt."""
        return self.kind in DECISIVE
