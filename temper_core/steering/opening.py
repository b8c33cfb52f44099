"""Open steering on this machine, or say what is in the way and what to do about it."""

from pathlib import Path

from temper_core.bpf import access
from temper_core.errors import BpfError, MachineError
from temper_core.settings.models import SchedulerSettings
from temper_core.steering.deciding import Judge
from temper_core.steering.kernel import SteeringKernel
from temper_core.steering.kicking import Kicker, may_renice
from temper_core.steering.pin import PinPlace
from temper_core.steering.scopes import CgroupIds
from temper_core.steering.sight import ThreadProbe
from temper_core.steering.steerer import KernelSide, Steerer

FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""``PROC_PID_INIT_INO`` (include/linux/proc_ns.h)."""


def open_steerer(
    settings: SchedulerSettings,
    cgroups: CgroupIds | None,
    *,
    proc_root: str = "/proc",
    sys_root: str = "/sys",
) -> Steerer:
    """Load the kernel side and make the pin's directory. No thread gets a hint yet.

    Raises MachineError where steering is not to be had here, with cause and remedy.
    """
    pin = PinPlace(Path(settings.steering_pin), proc_root=proc_root)
    if settings.steering == "static":
        pin.sweep()
        raise MachineError("[scheduler] steering is static")
    if cgroups is None:
        raise MachineError("no cgroup v2 is mounted, by which threads are told apart; mount it")
    _check_pid_namespace(proc_root)
    pin.prepare()
    found = access.probe(proc_root, sys_root)
    if not found.is_allowed:
        pin.remove()
        raise MachineError(f"{found.reason}; {found.remedy}")
    try:
        kernel = SteeringKernel.open()
    except BpfError as error:
        pin.remove()
        told = access.explain(error, proc_root, sys_root)
        raise MachineError(f"{told.reason}; {told.remedy}") from error
    judge = Judge(ThreadProbe(proc_root))
    kicker = Kicker() if may_renice(proc_root) else None
    return Steerer(KernelSide(kernel, pin, cgroups), judge, kicker, period_s=settings.steer_s)


def _check_pid_namespace(proc_root: str) -> None:
    """Raise MachineError inside a container's own pid namespace, where tids mean others."""
    try:
        namespace = (Path(proc_root) / "self/ns/pid").readlink()
    except OSError:
        return  # no /proc: everything else will say so
    if str(namespace) != FIRST_PID_NAMESPACE:
        raise MachineError(
            "this process has a pid namespace of its own, so the kernel's thread ids are not its; "
            "run it in the host's (in Kubernetes hostPID: true)"
        )
