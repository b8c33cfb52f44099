"""The extender's knowledge of all nodes, for ``/debug/scoring``."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

import attrs

from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.places import Place
from temper_plugin_power.extender.rating import Moment
from temper_plugin_power.operating.twin import Hardware
from temper_plugin_power.placing.subjects import Choices

MOST_SHOWN = 10_000


def shown(cluster: Cluster, choices: Choices, moment: Moment) -> Mapping[str, Any]:
    """Return the settings of scoring, and the numbers of at most ``MOST_SHOWN`` nodes."""
    places = sorted(cluster.places.values(), key=lambda place: place.name)
    return {
        "marginalScoringEnabled": choices.is_marginal,
        "coefficients": attrs.asdict(choices.coefficients),
        "nodes": [_shown(place, moment) for place in islice(places, MOST_SHOWN)],
    }


def _shown(place: Place, moment: Moment) -> Mapping[str, Any]:
    hardware = place.hardware or Hardware()
    return {
        "nodeName": place.name,
        "schedulableClass": place.node_class,
        **_stress(place),
        "cpuTotalCores": hardware.cores,
        "cpuMaxWattsTotal": hardware.max_watts_per_socket * hardware.sockets,
        "gpuCount": hardware.gpus,
        "gpuMaxWattsPerGPU": hardware.max_watts_per_gpu,
        "hasGpu": hardware.has_gpu,
        "stale": not place.is_fresh(moment.oldest, moment.newest),
    }


def _stress(place: Place) -> Mapping[str, Any]:
    if place.report is None or place.figures is None:
        return {"headroom": None, "coolingStress": None, "psuStress": None, "baseScore": None}
    twin = place.report.twin
    return {
        "headroom": twin.headroom,
        "coolingStress": twin.cooling_stress,
        "psuStress": twin.psu_stress,
        "baseScore": place.figures.base,
    }
