"""The pods that a command is about: those of a file, or those of a cluster."""

from pathlib import Path

from temper_kube import kubeconfig
from temper_kube.api_server import ApiServer
from temper_plugin_power.commands.pod_files import PodFile, read_pod_file, sort_pods
from temper_plugin_power.resources.fields import text_at

PODS = "/api/v1/pods"
UNENDED = "status.phase!=Failed,status.phase!=Succeeded"


def pods_of(file: Path | None, config: Path | None) -> PodFile:
    """Return the pods of *file*, or of the cluster of the kubeconfig *config* without one.

    Raises InputError or MachineError.
    """
    if file is not None:
        return read_pod_file(file)
    with ApiServer(kubeconfig.find_access(str(config or ""))) as server:
        items = server.each(PODS, fields=UNENDED)
        return sort_pods(((_place(item), item) for item in items), "the cluster")


def _place(item: object) -> str:
    return "/".join(text_at(item, f"metadata.{key}") for key in ("namespace", "name"))
