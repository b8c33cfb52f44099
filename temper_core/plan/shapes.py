"""The shapes of plans, and those that starved no layer in tests on the real kernel.

A plan's *shape* is what the engine's dispatch depends on: the layers in order, each with its kind
and flags, not its name, size or matchers. ``proven_shapes.json`` beside this module records the
outcome of shapes under saturation. Shapes that are not in it may be proven by the order of
dispatch (``shape_arguments.py``). ``docs/starvation.md`` describes both.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from temper_core.plan.render import engine_layers
from temper_core.plan.shape_arguments import LayerShape, is_served
from temper_core.records.layers import Layer
from temper_core.records.plans import LayerPlan, Note
from temper_core.records.steering import SYSTEM

TABLE = Path(__file__).with_name("proven_shapes.json")


class Verdict(StrEnum):
    """The test result of a shape on a number of CPUs."""

    GOOD = "good"
    BAD = "bad"
    UNPROVEN = "unproven"


@frozen
class Shape:
    """A plan's layers in order. As text, runs of alike layers are counted: ``2*Grouped Open``."""

    layers: tuple[LayerShape, ...]

    def __str__(self) -> str:
        """Return the layers in the order in which they match."""
        runs = [(str(layer), len(list(run))) for layer, run in groupby(self.layers)]
        return " ".join(f"{count}*{text}" if count > 1 else text for text, count in runs)


@frozen
class Row:
    """The result of one shape on a machine of ``cpus`` CPUs, after ``seconds`` of saturation.

    ``worst_ms`` is the longest wait of a thread, by scenario and then by ``system``, ``owning``
    and ``open`` layers. ``ended`` is why the engine exited, empty if it kept running.
    """

    shape: str
    cpus: int
    threads_per_core: int
    loads: bool
    seconds: float
    verdict: Verdict
    worst_ms: Mapping[str, Mapping[str, float]] = field(factory=dict)
    ended: str = ""


@frozen
class ShapeTable:
    """All rows, with the engine, kernel and date of the test."""

    engine: str
    kernel: str
    date: str
    rows: tuple[Row, ...] = ()

    def verdict(self, shape: Shape, cpus: int) -> Verdict:
        """Judge *shape* on *cpus* CPUs by the rows of the largest machine of at most that size.

        A larger machine has more unowned CPUs, so a shape that is good on a smaller one is good.
        One bad row among those of the same size is enough to be bad.
        """
        rows = [row for row in self.rows if row.shape == str(shape) and row.cpus <= cpus]
        nearest = max((row.cpus for row in rows), default=0)
        verdicts = {row.verdict for row in rows if row.cpus == nearest}
        if Verdict.BAD in verdicts:
            return Verdict.BAD
        return Verdict.GOOD if Verdict.GOOD in verdicts else Verdict.UNPROVEN


def shape_of(plan: LayerPlan) -> Shape:
    """Return the shape of *plan* as the engine receives it."""
    return Shape(tuple(_shape_of_layer(layer) for layer in engine_layers(plan)))


def verdict(plan: LayerPlan) -> Verdict:
    """Return the verdict on the shape of *plan* on a machine of its size.

    A saturated machine outweighs an argument.
    """
    shape = shape_of(plan)
    measured = proven_shapes().verdict(shape, len(plan.machine.cpus))
    if measured is Verdict.UNPROVEN and is_served(shape.layers):
        return Verdict.GOOD
    return measured


def judged(plan: LayerPlan) -> LayerPlan:
    """Return *plan*, with a note unless its shape is proven to starve no layer."""
    result = verdict(plan)
    if result is Verdict.GOOD:
        return plan
    outcome = "starved a layer" if result is Verdict.BAD else "was not tested"
    why = f"a plan of this shape {outcome} under saturation on the test kernel: {shape_of(plan)}"
    return evolve(plan, notes=(*plan.notes, Note("unproven_shape", "plan", why)))


@cache
def proven_shapes(path: Path = TABLE) -> ShapeTable:
    """Read the table. It is part of the package, so a fault in it is a bug."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows = [{**row, "verdict": Verdict(row["verdict"])} for row in document.pop("rows")]
    return ShapeTable(**document, rows=tuple(Row(**row) for row in rows))


def _shape_of_layer(layer: Layer) -> LayerShape:
    return LayerShape(
        kind=layer.kind,
        preempt=layer.preempt,
        protected=layer.protected,
        exclusive=layer.exclusive,
        keeps_cpus=bool(layer.cpus_min),
        is_system=layer.name == SYSTEM,
    )
