"""Steered plans in few words."""

from temper_core.records.layers import Layer
from temper_core.records.plans import LayerPlan
from temper_core.records.steering import FIXED_HINTS, Scope, ScopeKind, SteeredPlace, SteeringRule
from temper_core.records.thread_groups import ThreadMatch
from temper_core.records.tiers import LayerKind
from temper_core.testing import make_machine


def rule(layer, root_only=False, nice=0, **match):
    taken = ThreadMatch(**match) if match else None
    return SteeringRule(layer, taken, root_only=root_only, nice=nice)


def at(path, *rules, pod="", exact=False):
    return SteeredPlace(Scope(ScopeKind.PATH, path, exact=exact), rules, pod)


def named(process, *rules, pod=""):
    return SteeredPlace(Scope(ScopeKind.PROCESS, process), rules, pod)


def steered(*places, **groups):
    """Return a steered plan of the usual layers and *groups* (hints by name)."""
    hints = {**FIXED_HINTS, **groups}
    layers = tuple(Layer(name, LayerKind.OPEN, ()) for name in hints)
    return LayerPlan(make_machine(), layers, hints=hints, steering=places)
