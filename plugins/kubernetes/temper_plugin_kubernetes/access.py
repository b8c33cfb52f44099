"""The API server of the agent's own cluster."""

from collections.abc import Mapping

from temper_core import MachineError
from temper_kube.access import Access, in_cluster
from temper_kube.kubeconfig import read_kubeconfig


def find_access(kubeconfig: str, environment: Mapping[str, str]) -> Access:
    """Return the way to the API server. Raise MachineError where none is known.

    An agent starts no program of a kubeconfig, and takes no file that its settings do not name.
    """
    if kubeconfig:
        return read_kubeconfig(kubeconfig)
    found = in_cluster(environment)
    if found is None:
        raise MachineError(
            "no API server is known: KUBERNETES_SERVICE_HOST is not set, as it is in every pod, "
            "and [plugins.kubernetes] kubeconfig names no file"
        )
    return found
