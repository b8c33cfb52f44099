"""The checks of ``temper doctor``: whether power can be read on this node, and capped."""

import os
from collections.abc import Iterator

from temper_core import Check, CheckState
from temper_plugin_power.node.control import LET_GO
from temper_plugin_power.node.kernel_numbers import read_number
from temper_plugin_power.node.readings import why_unreadable
from temper_plugin_power.node.zones import Powercap
from temper_plugin_power.settings.node import NodeSettings

READING, CAPPING, TWIN = "power readings", "power caps", "NodeTwin of the cluster"
GPU_CAPPING = "GPU power caps"
NOT_NEEDED = "nothing else needs it"
MOUNT = "on a host run the agent as root; in a cluster set agent.powercap of the chart to writable"
DISK = "look at the disk of the directory that [safe_mode] state names"
RESTART = "`temper plugins --agent` names the cause; restart the agent"


def power_checks(
    powercap: Powercap,
    settings: NodeSettings,
    gpu_problem: str,
    message: str,
    *,
    caps_gpus: bool = False,
) -> Iterator[Check]:
    """Yield a check of the readings, and one of the caps where they are asked for.

    *gpu_problem* is the reason why GPUs cannot be read, and *message* why no cap is set.
    *caps_gpus* is whether there are GPUs that can be capped.
    """
    yield _readings(powercap, gpu_problem)
    if settings.actuate and (powercap.packages or not caps_gpus):
        yield _caps(powercap, message)


def gpu_caps_check(problem: str, *, disk_problem: str = "", has_let_go: bool = False) -> Check:
    """Return whether the limits of GPUs can be set. *problem* is why not.

    *disk_problem* is what says that the disk of their record does not answer.
    """
    if has_let_go:
        return Check(GPU_CAPPING, CheckState.WARNING, LET_GO, RESTART)
    if disk_problem:
        return Check(GPU_CAPPING, CheckState.WARNING, f"no cap is set: {disk_problem}", DISK)
    if not problem:
        return Check(GPU_CAPPING, CheckState.OK, "the limits of GPUs can be set by NVML")
    return Check(GPU_CAPPING, CheckState.UNKNOWN, f"not here: {problem}", NOT_NEEDED)


def twin_check(problem: str) -> Check:
    """Return whether the NodeTwin of the cluster is read, and its controlStatus written."""
    if not problem:
        return Check(TWIN, CheckState.OK, "read, and its controlStatus written")
    remedy = "give the agent's account the rights of plugins/power/node-rbac.yaml"
    return Check(TWIN, CheckState.WARNING, problem, remedy)


def _readings(powercap: Powercap, gpu_problem: str) -> Check:
    gpus = "GPUs by nvidia-smi" if not gpu_problem else f"no GPUs: {gpu_problem}"
    if not powercap.packages:
        state = CheckState.UNKNOWN if gpu_problem else CheckState.OK
        return Check(READING, state, f"not here: {powercap.why_none}; {gpus}", NOT_NEEDED)
    for package in powercap.packages:
        path = package.zone.energy
        try:
            read_number(path)
        except OSError as error:
            remedy = "run the agent as root; only root reads RAPL since Linux 5.10"
            return Check(READING, CheckState.WARNING, why_unreadable(path, error), remedy)
    names = ", ".join(package.name for package in powercap.packages)
    return Check(READING, CheckState.OK, f"{names} by RAPL; {gpus}")


def _caps(powercap: Powercap, message: str) -> Check:
    if not powercap.packages:
        detail = f"not here: {powercap.why_none}"
        return Check(CAPPING, CheckState.WARNING, detail, "set actuate to false on this node")
    blocked = [each.limit for each in powercap.packages if not os.access(each.limit, os.W_OK)]
    if blocked:
        return Check(CAPPING, CheckState.WARNING, f"{blocked[0]} is not writable", MOUNT)
    if message == LET_GO:
        return Check(CAPPING, CheckState.WARNING, message, RESTART)
    if message:
        remedy = "[plugins.power.node] names the file and its timeout"
        return Check(CAPPING, CheckState.WARNING, f"no cap is set: {message}", remedy)
    return Check(CAPPING, CheckState.OK, "the limits follow the specification")
