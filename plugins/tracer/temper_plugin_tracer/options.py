"""The settings of the tracer: the table ``[plugins.tracer]``."""

from attrs import frozen
from attrs.validators import in_, instance_of

from temper_core import setting
from temper_plugin_tracer.capture.backend_names import AUTO, CHOICES


@frozen
class Options:
    """The tracer's settings."""

    edges: bool = setting(
        False,
        "Whether wake-ups and waits are watched in short windows from the start, not only on "
        "request.",
        validator=instance_of(bool),
    )
    backend: str = setting(
        AUTO,
        "How a trace is recorded unless the request says so: `bpf`, `tracefs`, `bcc` or "
        "`perfetto`. `auto` takes the first of them that works on the node.",
        validator=in_(CHOICES),
    )
