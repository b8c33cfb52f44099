"""The plugins that come with the agent: those whose distributions its extras name."""

import re
from importlib import metadata

from temper_core.plugin_host.host import PluginHost, load_host
from temper_core.plugin_host.installed import installed_plugins
from temper_core.settings.models import PluginHostSettings, Settings

AGENT = "temper-agent"
PLUGIN = "temper-plugin-"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def first_party_host() -> PluginHost:
    """Return a host with every installed first-party plugin; raise PluginError where one fails."""
    names = {
        _plain(match[0]) for line in metadata.requires(AGENT) or () if (match := _NAME.match(line))
    }
    ours = {name for name in names if name.startswith(PLUGIN)}
    allow = [plugin.name for plugin in installed_plugins() if _plain(plugin.distribution) in ours]
    return load_host(Settings(plugin_host=PluginHostSettings(allow=tuple(allow), strict=True)))


def _plain(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
