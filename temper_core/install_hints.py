"""The features of first-party plugins, for a user that lacks one of them.

The metadata of the distribution has it, in the entry points of the group `GROUP`. The name of an
entry point is a command with its group (``temper lint``) or a path (``/wakes``), and its value is
the module of the plugin. Nothing is imported.
"""

from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

GROUP = "temper.first_party"
DISTRIBUTION = "temper-agent"
MODULE_PREFIX = "temper_plugin_"


def plugin_with(offer: str) -> str | None:
    """Return the name of the first-party plugin with the command or path *offer*, None for others.

    The name is also that of the extra that installs the plugin.
    """
    return _plugins_by_offer().get(offer)


def install_command(plugin: str) -> str:
    """Return the shell command that installs the first-party plugin *plugin*."""
    return f"pip install '{DISTRIBUTION}[{plugin}]'"


@cache
def _plugins_by_offer() -> dict[str, str]:
    try:
        entries = distribution(DISTRIBUTION).entry_points.select(group=GROUP)
    except PackageNotFoundError:
        return {}
    return {entry.name: entry.value.removeprefix(MODULE_PREFIX) for entry in entries}
