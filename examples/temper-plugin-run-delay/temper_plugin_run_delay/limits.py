"""The settings of the plugin."""

from attrs import frozen
from attrs.validators import ge, gt

from temper_core import setting


@frozen
class Limits:
    """The table ``[plugins.run-delay]``."""

    log_kib: int = setting(
        256, "KiB of a log. A larger one is closed, and the next begins.", validator=ge(1)
    )
    state_kib: int = setting(
        4096, "KiB of all logs together. The agent removes the oldest.", validator=ge(1)
    )
    waiting: float = setting(
        1.0, "Run delay in CPUs from which a pod waits too long.", validator=gt(0.0)
    )
    summary_s: float = setting(30.0, "Seconds that a summary may take.", validator=gt(0.0))
    lamps: str = setting(
        "", "Folder of the device whose lamp is lit while delays are logged. Empty for none."
    )
