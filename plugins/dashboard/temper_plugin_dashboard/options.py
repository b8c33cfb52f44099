"""The settings of the dashboard: the table ``[plugins.dashboard]``."""

from attrs import frozen
from attrs.validators import instance_of

from temper_core import setting


@frozen
class Options:
    """The dashboard's settings."""

    actions: bool = setting(
        True,
        "Whether the page offers actions, such as safe mode and captures. They need a token of "
        "`[server] token_file` in any case.",
        validator=instance_of(bool),
    )
