"""The settings of the tracer: the table ``[plugins.tracer]``."""

from attrs import field, frozen
from attrs.validators import instance_of


@frozen
class Options:
    """What the tracer does without a request."""

    edges: bool = field(
        default=False,
        validator=instance_of(bool),
        metadata={
            "help": "Whether wake-ups and waits are watched in short windows from the start, not "
            "only on request."
        },
    )
