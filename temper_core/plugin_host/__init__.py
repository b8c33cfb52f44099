"""Load plugins and call into them, so that a broken one harms only itself.

pluggy stops at the first implementation that raises, drops what the others returned, and waits
for ever. An agent on every node cannot have that, so every plugin has a thread of its own, every
call a deadline, and whoever breaks the contract is *set aside* by name while the rest goes on.
A plugin that ends the process from C, or with ``os._exit``, is beyond what a host can hold.
"""

from temper_core.plugin_host.answers import RECORDS, Contested
from temper_core.plugin_host.host import Contribution, PluginHost, load_host

__all__ = ["RECORDS", "Contested", "Contribution", "PluginHost", "load_host"]
