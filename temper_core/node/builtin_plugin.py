"""The core's own contributions through the plugin hooks: its pod sources."""

from temper_core.hookspecs import hookimpl
from temper_core.node.sources import builtin_pod_sources
from temper_core.records.contributions import PodSource

NAME = "core"


@hookimpl
def temper_pod_sources() -> list[PodSource]:
    """Contribute the sources ``local`` and ``file``."""
    return builtin_pod_sources()
