"""The processes that a command records, by process or by pod."""

from pathlib import Path

from temper_core import configure_logs, find_pod_cgroups, load_settings
from temper_plugin_trainer.process_trees import CgroupProcesses, ProcessSource, ProcessTrees


def source_of(pids: tuple[int, ...], pod: str | None, settings: Path | None) -> ProcessSource:
    """Return the trees below *pids*, or the containers of *pod* if it is given.

    Raises InputError for an unknown process or pod, and MachineError if the cgroups of a pod are
    not known.
    """
    if pod is None:
        return ProcessTrees(pids)
    configure_logs("warning")
    cgroups = find_pod_cgroups(pod, load_settings(settings))
    return CgroupProcesses(cgroups.directories, cgroups.container)
