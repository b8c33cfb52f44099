"""The settings of the dashboard: the table ``[plugins.dashboard]``."""

from attrs import frozen
from attrs.validators import and_, instance_of, matches_re, max_len

from temper_core import setting

LONGEST_ADDRESS = 300
ADDRESS = r"(https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?)?"


@frozen
class Options:
    """The dashboard's settings."""

    actions: bool = setting(
        True,
        "Whether the page offers actions, such as safe mode and captures. They need a token of "
        "`[server] token_file` in any case.",
        validator=instance_of(bool),
    )
    perfetto: str = setting(
        "",
        "Address of a Perfetto UI that the page may open a trace in, such as "
        "`https://ui.perfetto.dev`. Empty for none. A reader has to click for it, and the UI gets "
        "the trace, with the names of threads and pods in it.",
        validator=and_(instance_of(str), max_len(LONGEST_ADDRESS), matches_re(ADDRESS)),
        form="an address such as 'https://ui.perfetto.dev', or empty",
    )
