"""Warns where a Prometheus has energy, and none of it is that of a known pod."""

from collections.abc import Collection

import structlog
from attrs import define

from temper_plugin_power.measuring.measuring import Measured

MOST_NAMED = 3

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define
class EnergyMatching:
    """Compares the pods of the energy with those of the cluster. It warns once until they match."""

    _has_warned: bool = False

    def look(self, measured: Measured, pods: Collection[str]) -> None:
        """Warn if there is energy, but of none of *pods* (``namespace/name``)."""
        energetic = sorted(key for key, each in measured.measures.items() if each.has_energy)
        is_odd = bool(measured.energy_labels and pods) and not set(energetic) & set(pods)
        if is_odd and not self._has_warned:
            log.warning(
                "energy_of_no_pod",
                dialect=str(measured.dialect),
                labels=list(measured.energy_labels),
                pods_seen=energetic[:MOST_NAMED],
            )
        self._has_warned = is_odd
