"""Deciding for 250 pods on 64 CPUs against parsing the PodList they come in."""

import json
from typing import Any

from startup import CORES, PODS, podlist
from timing import median_ms

from temper_core.node.podlist import read_pods
from temper_core.plan import ProfileCatalogue, decide
from temper_core.records.machine import MachineShape
from temper_core.settings.models import Settings

ROUNDS = 25


def measure() -> dict[str, Any]:
    """Return median milliseconds of each step, and the ratio of deciding to parsing."""
    text = podlist()
    machine, settings = MachineShape.uniform(CORES, 2), Settings()
    pods = read_pods(text, source="bench")
    parse = median_ms(lambda: json.loads(text), ROUNDS)
    compiled = median_ms(lambda: decide(pods, ProfileCatalogue(), machine, settings), ROUNDS)
    return {
        "pods": PODS,
        "podlist_bytes": len(text),
        "json_loads_ms": parse,
        "read_pods_ms": median_ms(lambda: read_pods(text, source="bench"), ROUNDS),
        "decide_ms": compiled,
        "decide_to_json_loads": round(compiled / parse, 3),
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
