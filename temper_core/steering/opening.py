"""Open steering on this machine, or report the obstacle and its remedy."""

from pathlib import Path

from temper_core.bpf import access
from temper_core.errors import BpfError, MachineError
from temper_core.settings.models import SchedulerSettings
from temper_core.steering.deciding import Judge
from temper_core.steering.kernel import SteeringKernel
from temper_core.steering.kicking import Kicker, may_renice
from temper_core.steering.nice_record import NiceRecord
from temper_core.steering.niceness import Niceness, give_back_all
from temper_core.steering.pin import PinPlace
from temper_core.steering.scopes import CgroupIds
from temper_core.steering.steerer import KernelSide, Steerer
from temper_core.steering.thread_identity import in_first_pid_namespace
from temper_core.steering.thread_probe import ThreadProbe


def open_steerer(
    settings: SchedulerSettings,
    cgroups: CgroupIds | None,
    run_directory: Path,
    *,
    proc_root: str = "/proc",
    sys_root: str = "/sys",
) -> Steerer:
    """Load the kernel side and make the pin's directory. No thread gets a hint yet.

    Raises MachineError, with cause and remedy, if steering is not possible here.
    """
    record = NiceRecord(run_directory)
    give_back_all(record, proc_root)  # of an agent that was killed
    pin = PinPlace(Path(settings.steering_pin), proc_root=proc_root)
    if settings.steering == "static":
        pin.sweep()
        raise MachineError("[scheduler] steering is static")
    if cgroups is None:
        raise MachineError("no cgroup v2 is mounted, and steering needs it; mount it")
    _check_pid_namespace(proc_root)
    pin.prepare()
    probe = access.probe(proc_root, sys_root)
    if not probe.is_allowed:
        pin.remove()
        raise MachineError(f"{probe.reason}; {probe.remedy}")
    try:
        kernel = SteeringKernel.open()
    except BpfError as error:
        pin.remove()
        cause = access.explain_bpf_error(error, proc_root, sys_root)
        raise MachineError(f"{cause.reason}; {cause.remedy}") from error
    judge = Judge(ThreadProbe(proc_root))
    is_allowed = may_renice(proc_root)
    return Steerer(
        KernelSide(kernel, pin, cgroups),
        judge,
        Kicker() if is_allowed else None,
        Niceness(record, is_allowed=is_allowed),
        period_s=settings.steer_s,
    )


def _check_pid_namespace(proc_root: str) -> None:
    """Raise MachineError inside a container's own pid namespace, whose tids differ."""
    if not in_first_pid_namespace(proc_root):
        raise MachineError(
            "this process has a pid namespace of its own, so its thread ids are not the kernel's; "
            "run it in the host's (in Kubernetes hostPID: true)"
        )
