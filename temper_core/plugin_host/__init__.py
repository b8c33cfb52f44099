"""Load plugins and call into them, so that a broken one harms only itself.

pluggy stops at the first implementation that raises, drops the results of the others, and waits
without a time limit. An agent on every node needs more: each plugin has its own thread, each call
a deadline, and a plugin that breaks the contract is *set aside* by name while the rest goes on.
Results and exceptions leave the thread as copies of plain types: reading them runs no plugin code.
The host cannot contain a plugin that ends the process from C, or with ``os._exit``.
"""

from temper_core.plugin_host.answers import RECORDS, Contested
from temper_core.plugin_host.host import Contribution, PluginHost, load_host
from temper_core.plugin_host.plain_values import plain_bytes, plain_record, plain_text, plain_value

__all__ = [
    "RECORDS",
    "Contested",
    "Contribution",
    "PluginHost",
    "load_host",
    "plain_bytes",
    "plain_record",
    "plain_text",
    "plain_value",
]
