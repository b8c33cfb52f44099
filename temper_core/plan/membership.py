"""Find the layer of a plan that a thread belongs to."""

import weakref

from temper_core.engine.matching import holds
from temper_core.plan.place_index import PlaceIndex
from temper_core.records.layers import Layer
from temper_core.records.plans import LayerPlan
from temper_core.records.threads import ThreadIdentity

_indexes: dict[int, PlaceIndex] = {}


def layer_of(plan: LayerPlan, thread: ThreadIdentity) -> Layer | None:
    """Return the layer of *thread*: its steered layer, else the first that matches it.

    In a steered plan, a thread without a rule belongs to the Open layer.
    """
    if plan.is_steered:
        return plan.layer_named(place_index(plan).layer_of(thread))
    for layer in plan.layers:
        if any(all(holds(matcher, thread) for matcher in block) for block in layer.matches):
            return layer
    return None


def place_index(plan: LayerPlan) -> PlaceIndex:
    """Return the index of the places of a steered plan, made once per plan."""
    index = _indexes.get(id(plan))
    if index is None:
        index = _indexes[id(plan)] = PlaceIndex(plan.steering)
        weakref.finalize(plan, _indexes.pop, id(plan), None)
    return index
