"""The table ``[plugins.kubernetes]``."""

from attrs import frozen
from attrs.validators import ge, gt

from temper_core import setting


@frozen
class Options:
    """How the API server is reached, and what is written to it."""

    kubeconfig: str = setting("", "A kubeconfig; empty takes the pod's own service account.")
    node: str = setting(
        "",
        "The node's name in the cluster; empty takes the environment's NODE_NAME, then the agent's "
        "`node`, then the host's.",
    )
    kubelet: str = setting(
        "",
        "URL of the kubelet's read-only view, such as http://127.0.0.1:10255; asked where no API "
        "server has ever answered.",
    )
    stale_after_s: float = setting(
        10.0,
        "Seconds without the API server after which the pods' age is reported.",
        validator=ge(0.0),
    )
    annotations: bool = setting(True, "Whether the node's annotations are written.")
    events: bool = setting(True, "Whether the node's events are written.")
    write_every_s: float = setting(
        10.0, "Seconds between two writes of either kind, at least.", validator=gt(0.0)
    )
    refresh_s: float = setting(
        300.0,
        "Seconds after which a value that moves is written although nothing else changed.",
        validator=gt(0.0),
    )
