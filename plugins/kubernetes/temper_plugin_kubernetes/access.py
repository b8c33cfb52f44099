"""The API server of the agent's own cluster."""

from collections.abc import Mapping

from temper_core import MachineError
from temper_kube.access import Access, in_cluster
from temper_kube.kubeconfig import read_kubeconfig


def find_access(kubeconfig: str, environment: Mapping[str, str]) -> Access:
    """Return the API server's address and credentials. Raise MachineError if none is known.

    An agent runs no credential program of a kubeconfig, and reads only the file of its settings.
    """
    if kubeconfig:
        return read_kubeconfig(kubeconfig)
    access = in_cluster(environment)
    if access is None:
        raise MachineError(
            "no API server is known: KUBERNETES_SERVICE_HOST is not set, as it is in every pod, "
            "and [plugins.kubernetes] kubeconfig names no file"
        )
    return access
