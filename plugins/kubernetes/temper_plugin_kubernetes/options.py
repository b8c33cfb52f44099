"""The table ``[plugins.kubernetes]``."""

from attrs import field, frozen
from attrs.validators import ge, gt


@frozen
class Options:
    """How the API server is reached, and which data are written to it.

    Without ``kubeconfig`` the pod's own service account is used. ``node`` is the node's name in the
    cluster. If it is empty, the environment's NODE_NAME is used, then the agent's name.
    """

    kubeconfig: str = ""
    node: str = ""
    kubelet: str = ""
    """URL of the kubelet's read-only port, read until the API server has answered once."""
    stale_after_s: float = field(default=10.0, validator=ge(0.0))
    annotations: bool = True
    events: bool = True
    write_every_s: float = field(default=10.0, validator=gt(0.0))
    refresh_s: float = field(default=300.0, validator=gt(0.0))
