"""The settings of the node's side: the table ``[plugins.power.node]``."""

from attrs import frozen
from attrs.validators import matches_re

from temper_core import setting
from temper_plugin_power.settings.durations import duration


@frozen
class NodeSettings:
    """Readings and caps of the node's power, in the agent."""

    actuate: bool = setting(
        False,
        "Whether the agent sets power caps. Without it, the agent only reads.",
    )
    spec_file: str = setting(
        "",
        "The absolute path of the file with the caps: a NodeTwin of this node.",
        validator=matches_re(r"(/.+)?"),
        form="an absolute path, or empty",
    )
    twin_from_cluster: bool = setting(
        False,
        "Whether the NodeTwin of this node is read from the API server, in place of a file, and "
        "its controlStatus written.",
    )
    kubeconfig: str = setting(
        "",
        "The absolute path of a kubeconfig for it. Without one, the agent uses the account of its "
        "pod.",
        validator=matches_re(r"(/.+)?"),
        form="an absolute path, or empty",
    )
    powercap_path: str = setting(
        "/sys/class/powercap",
        "The absolute path of the kernel's powercap, or of a mount of "
        "/sys/devices/virtual/powercap, which container runtimes mask.",
        validator=matches_re(r"/.+"),
        form="an absolute path",
    )
    interval: str = duration(
        "20s", "The time between two looks at the NodeTwin, and between two readings of GPUs."
    )
    spec_timeout: str = duration(
        "5m", "The age of what the NodeTwin says after which the caps are lifted."
    )
