"""The settings of the tracer: the table ``[plugins.tracer]``."""

from attrs import frozen
from attrs.validators import instance_of

from temper_core import setting


@frozen
class Options:
    """The tracer's settings."""

    edges: bool = setting(
        False,
        "Whether wake-ups and waits are watched in short windows from the start, not only on "
        "request.",
        validator=instance_of(bool),
    )
