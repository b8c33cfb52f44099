"""Shapes that the order of dispatch proves, beside those that were saturated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.plan import decide
from temper_core.plan.shape_arguments import LayerShape, is_served
from temper_core.plan.shapes import Shape, Verdict, proven_shapes
from temper_core.records.steering import Steering
from temper_core.records.tiers import LayerKind
from temper_core.settings import Settings
from tests.core.plan.nodes import nodes

SYSTEM_WITH_A_CORE = "system:Grouped+preempt"
SYSTEM_WITHOUT = "system:Open+preempt"


def shape_from(text):
    """Read a shape from its text, as the table has it."""
    layers = []
    for run in text.split():
        count, _, layer = run.rpartition("*")
        layers += [layer_from(layer)] * int(count or 1)
    return Shape(tuple(layers))


def layer_from(text):
    prefix, _, rest = text.rpartition(":")
    kind, *flags = rest.split("+")
    given_flags = {flag: True for flag in flags if flag != "from-0"}
    owns = kind != "Open" and "from-0" not in flags
    return LayerShape(LayerKind(kind), **given_flags, keeps_cpus=owns, is_system=bool(prefix))


def test_the_table_covers_shapes_that_are_argued_for():
    argued = [row for row in proven_shapes().rows if is_served(shape_from(row.shape).layers)]

    assert len(argued) >= 10


@pytest.mark.parametrize("row", proven_shapes().rows, ids=lambda row: f"{row.cpus}: {row.shape}")
def test_what_is_argued_for_was_never_seen_to_starve(row):
    shape = shape_from(row.shape)

    assert str(shape) == row.shape
    assert row.verdict is Verdict.GOOD or not is_served(shape.layers)


@pytest.mark.parametrize(
    "text",
    [
        f"Confined+protected {SYSTEM_WITH_A_CORE} Grouped",
        f"Confined+protected+from-0 Grouped+preempt+protected {SYSTEM_WITH_A_CORE} Grouped",
        f"{SYSTEM_WITHOUT} Open",
        f"3*Confined+protected+exclusive {SYSTEM_WITHOUT} Open Open+preempt",
    ],
)
def test_a_layer_that_owns_cpus_or_is_alone_on_the_unowned_ones_is_served(text):
    assert is_served(shape_from(text).layers)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"Grouped+protected {SYSTEM_WITHOUT} Open", "a Grouped layer may come before Open"),
        (f"Confined+from-0 {SYSTEM_WITHOUT} Open", "no CPU of its own to begin with"),
        (f"{SYSTEM_WITHOUT} 2*Open", "the first of two Open layers may keep a CPU"),
        (f"Confined {SYSTEM_WITH_A_CORE} Open", "Grouped layers that preempt keep unowned CPUs"),
        ("Confined Grouped", "there is no system layer"),
    ],
)
def test_whatever_may_wait_for_others_is_not_argued_for(text, why):
    assert not is_served(shape_from(text).layers), why


@given(nodes(), st.booleans())
def test_no_plan_under_the_default_settings_is_unproven(node, is_steered):
    pods, catalogue, machine, _ = node

    plan = decide(pods, catalogue, machine, Settings(), steering=Steering() if is_steered else None)

    assert "unproven_shape" not in {note.code for note in plan.notes}
