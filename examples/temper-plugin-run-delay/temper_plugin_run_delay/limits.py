"""The settings of the plugin."""

from attrs import field, frozen
from attrs.validators import ge, gt


@frozen
class Limits:
    """The table ``[plugins.run-delay]``.

    Attributes:
        log_kib: A log larger than this is closed, and the next begins.
        state_kib: The bound on all logs together. The agent removes the oldest.
        waiting: Run delay in CPUs from which a pod is too slow.
        summary_s: The time that a summary may take.

    """

    log_kib: int = field(default=256, validator=ge(1))
    state_kib: int = field(default=4096, validator=ge(1))
    waiting: float = field(default=1.0, validator=gt(0.0))
    summary_s: float = field(default=30.0, validator=gt(0.0))
