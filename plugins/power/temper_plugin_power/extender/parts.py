"""The parts of ExtenderArgs and ExtenderPreemptionArgs, the bodies of kube-scheduler's requests.

Source: k8s.io/kube-scheduler/extender/v1. Its structs have no JSON names, so that the keys are
those of Go, such as ``Pod`` and ``NodeNames``. Any case is taken, as Go takes any.
"""

from collections.abc import Iterator
from typing import Any

from temper_core import InputError, parse_tenant_json
from temper_plugin_power.extender.pieces import PiecedText
from temper_serving.values import MOST_VALUES, values_in

POD, NODES, NODE, NAMES, OTHER = "pod", "nodes", "node", "nodenames", ""
VICTIMS, VICTIMS_OF = "victims", "victims of a node"
SMALL_BYTES = 1024 * 1024
"""A smaller body of few values is parsed at once, in some 10 ms. 5,000 names have 300 KB."""
NO_LIST = "nodes.items: must be a list of nodes"

PART_OF = {
    "pod": POD,
    "nodes": NODES,
    "nodenames": NAMES,
    "nodenametovictims": VICTIMS,
    "nodenametometavictims": VICTIMS,
}
"""The part that a key begins, in lower case. A scheduler sends one of the two tables of victims."""

Part = tuple[str, Any]
"""``POD`` or ``NAMES`` with their value, ``NODES`` with whether there is a list, or a ``NODE``.

``VICTIMS`` says whether there is a table, and ``VICTIMS_OF`` has one entry: a node and a value.
``OTHER`` stands for a value that is left out, so that the caller has its turn after each value."""


def parts_of(body: bytes) -> Iterator[Part]:
    """Yield the parts of *body*, whole nodes one by one. Raises InputError for another form."""
    return parts_at_once(body) if is_small(body) else parts_piecewise(body)


def is_small(body: bytes) -> bool:
    """Return whether *body* is parsed at once. Its bytes alone do not bound time and memory."""
    return len(body) <= SMALL_BYTES and values_in(body) <= MOST_VALUES


def parts_at_once(body: bytes) -> Iterator[Part]:
    """Yield the parts of a small body."""
    try:
        values = parse_tenant_json(body)
    except ValueError as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"the body is not JSON: {reason[:200]}") from error
    if not isinstance(values, dict):
        raise InputError(f"the body must be a JSON object, not {type(values).__name__}")
    for key, value in values.items():
        part = PART_OF.get(key.lower(), OTHER)
        if part == NODES and isinstance(value, dict):
            yield from _nodes_of(value)
        elif part == VICTIMS and isinstance(value, dict):
            yield VICTIMS, {}
            yield from ((VICTIMS_OF, entry) for entry in value.items())
        elif part != OTHER:
            yield part, value


def _nodes_of(nodes: dict[str, Any]) -> Iterator[Part]:
    yield NODES, {}
    for key, items in nodes.items():
        if key.lower() == "items" and items is not None:
            if not isinstance(items, list):
                raise InputError(NO_LIST)
            yield from ((NODE, item) for item in items)


def parts_piecewise(body: bytes) -> Iterator[Part]:
    """Yield the parts of a body, of which one value at a time is parsed."""
    text = PiecedText(body)
    for key in _keys(text):
        part = PART_OF.get(key.lower(), OTHER)
        if part in (NODES, VICTIMS) and text.next() == "{":
            yield part, {}
            yield from _pieces_of_nodes(text) if part == NODES else _pieces_of_victims(text)
            continue
        value = text.value()
        yield (part, value) if part != OTHER else (OTHER, None)
    if text.next():
        raise InputError("the body is not JSON: text follows the object")


def _pieces_of_nodes(text: PiecedText) -> Iterator[Part]:
    for key in _keys(text):
        if key.lower() != "items" or text.next() != "[":
            if text.value() is not None and key.lower() == "items":
                raise InputError(NO_LIST)
            yield OTHER, None
            continue
        text.take("[")
        if text.takes("]"):
            continue
        yield NODE, text.value()
        while not text.takes("]"):
            text.take(",")
            yield NODE, text.value()


def _pieces_of_victims(text: PiecedText) -> Iterator[Part]:
    for node in _keys(text):
        yield VICTIMS_OF, (node, text.value())


def _keys(text: PiecedText) -> Iterator[str]:
    """Yield the keys of the object that follows. The caller takes the value of each."""
    text.take("{")
    if text.takes("}"):
        return
    yield text.key()
    while not text.takes("}"):
        text.take(",")
        yield text.key()
