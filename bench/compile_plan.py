"""Deciding for 250 pods on 64 CPUs against parsing their PodList."""

import json
from typing import Any

from attrs import evolve
from startup import CORES, PODS, podlist
from timing import median_ms

from temper_core.decide.decider import Decider
from temper_core.node.podlist import read_pods
from temper_core.plan import ProfileCatalogue, decide
from temper_core.plugin_host import PluginHost
from temper_core.records.machine import MachineShape
from temper_core.records.pods import Pod
from temper_core.settings.models import Settings

ROUNDS = 25
MORE_MILLIS = 300
"""Added to every request, so that the layers in force are too small and a held plan is made."""


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
        **_steered(pods, machine, settings),
    }


def _steered(pods: tuple[Pod, ...], machine: MachineShape, settings: Settings) -> dict[str, Any]:
    """Measure deciding with hints: one or two plans, against the plan in force."""
    decider = Decider(settings, machine, PluginHost(), ProfileCatalogue())
    in_force = decider.decide(pods, steered=True).wanted
    larger = [evolve(pod, cpu_request_millis=pod.cpu_request_millis + MORE_MILLIS) for pod in pods]
    return {
        "decide_steered_ms": median_ms(
            lambda: decider.decide(pods, in_force, steered=True), ROUNDS
        ),
        "decide_steered_and_held_ms": median_ms(
            lambda: decider.decide(larger, in_force, steered=True), ROUNDS
        ),
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
