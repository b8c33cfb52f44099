"""Compile pods, profiles, machine and settings into a layer plan. Pure, no I/O."""

from collections.abc import Iterable

from temper_core.plan.assign import assign
from temper_core.plan.compiler import compile_plan
from temper_core.plan.explain import Explanation, explain, explanation_document
from temper_core.plan.render import plan_document, render_engine
from temper_core.profiles.catalogue import Detect, ProfileCatalogue, detect_nothing
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.pods import Pod
from temper_core.records.steering import Steering
from temper_core.settings import Settings

__all__ = [
    "Explanation",
    "ProfileCatalogue",
    "assign",
    "compile_plan",
    "decide",
    "explain",
    "explanation_document",
    "plan_document",
    "render_engine",
]


def decide(
    pods: Iterable[Pod],
    catalogue: ProfileCatalogue,
    machine: MachineShape,
    settings: Settings,
    detect: Detect = detect_nothing,
    *,
    steering: Steering | None = None,
) -> LayerPlan:
    """Assign every pod and compile the plan. Agent and command line share this one path."""
    assignments = assign(pods, catalogue, machine, settings, detect)
    return compile_plan(assignments, machine, settings, steering=steering)
