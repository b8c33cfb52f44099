"""What a plan's shape is, and what is known of shapes."""

import json

import attrs
import pytest

from temper_core.plan.shapes import (
    LayerShape,
    Row,
    ShapeTable,
    Verdict,
    judged,
    proven_shapes,
    shape_of,
    verdict,
)
from temper_core.records.tiers import LayerKind
from tests.kernel.starvation.emitted import Tenant, emitted, plan_for
from tests.kernel.starvation.judge import MACHINES, is_kept, keep

NOT_KEPT_ONCE = {("Grouped+protected system:Open+preempt Open Open+preempt", 2)}
"""Bad in one judging of two, and not by the order of dispatch: see docs/starvation.md."""

CRITICAL = Tenant("critical", 2_000, "")


@pytest.fixture
def crowded():
    return plan_for((8, 2), (CRITICAL, Tenant("high", 2_000, "")), is_steered=False)


@pytest.fixture
def row_of():
    def make(plan, verdict, cpus=8, **changes):
        row = Row(str(shape_of(plan)), cpus, 2, loads=True, seconds=10.0, verdict=verdict)
        return attrs.evolve(row, **changes)

    return make


def table(*rows):
    return ShapeTable("scx_layered 1.1.4", "6.18.15", "2026-11-21", rows)


def changed(plan, layer, **changes):
    layers = [attrs.evolve(each, **changes) if each.name == layer else each for each in plan.layers]
    return attrs.evolve(plan, layers=tuple(layers))


def test_a_shape_knows_nothing_of_names_sizes_slices_and_members(crowded):
    layer = crowded.layer_named("critical")
    renamed = changed(
        crowded, "critical", name="vip", cpus_max=layer.cpus_max - 2, slice_us=1_000, members=()
    )

    assert shape_of(renamed) == shape_of(crowded)


@pytest.mark.parametrize("flag", ["preempt", "protected", "exclusive"])
def test_every_flag_of_a_layer_makes_another_shape(crowded, flag):
    layer = crowded.layer_named("high")

    other = changed(crowded, "high", **{flag: not getattr(layer, flag)})

    assert shape_of(other) != shape_of(crowded)


def test_a_layer_that_owns_no_cpu_while_it_is_idle_makes_another_shape(crowded):
    idle = changed(crowded, "high", cpus_min=0)

    assert shape_of(idle) != shape_of(crowded)
    assert "from-0" in str(shape_of(idle))


def test_the_order_of_layers_is_part_of_the_shape(crowded):
    turned = attrs.evolve(crowded, layers=tuple(reversed(crowded.layers)))

    assert shape_of(turned) != shape_of(crowded)


def test_a_shape_as_text_names_the_system_layer_and_counts_runs_of_alike_layers(crowded):
    critical = crowded.layer_named("critical")
    longer = attrs.evolve(crowded, layers=(critical, critical, *crowded.layers))

    text = str(shape_of(longer))

    assert text.startswith("2*Confined+protected system:")


def test_what_no_layer_may_own_belongs_to_the_open_layer_for_the_engine(crowded):
    *_, shared = shape_of(crowded).layers

    assert shared == LayerShape(LayerKind.GROUPED, keeps_cpus=True)


def test_an_open_layer_stays_open_where_no_layer_owns_anything():
    alone = plan_for((1, 2), (CRITICAL,), is_steered=False)

    assert str(shape_of(alone)) == "system:Open+preempt Open"


def test_a_steered_plan_ends_with_one_layer_more_than_it_lists():
    steered = plan_for((2, 2), (CRITICAL,), is_steered=True)

    assert len(shape_of(steered).layers) == len(steered.layers) + 1


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [(4, Verdict.UNPROVEN), (8, Verdict.GOOD), (12, Verdict.GOOD), (16, Verdict.BAD)],
)
def test_the_largest_judged_machine_that_is_no_larger_answers(crowded, row_of, cpus, expected):
    known = table(row_of(crowded, Verdict.GOOD, 8), row_of(crowded, Verdict.BAD, 16))

    assert known.verdict(shape_of(crowded), cpus) is expected


def test_one_bad_row_outweighs_a_good_one_of_the_same_size(crowded, row_of):
    cores = row_of(crowded, Verdict.BAD, threads_per_core=1)

    known = table(row_of(crowded, Verdict.GOOD), cores)

    assert known.verdict(shape_of(crowded), 8) is Verdict.BAD


def test_rows_of_other_shapes_say_nothing(crowded, row_of):
    other = changed(crowded, "high", preempt=False)

    known = table(row_of(other, Verdict.GOOD))

    assert known.verdict(shape_of(crowded), 8) is Verdict.UNPROVEN


def test_a_plan_of_a_shape_that_nobody_judged_says_so(crowded):
    nothing = {"kind": LayerKind.OPEN, "cpus_min": None, "cpus_max": None}
    odd = changed(changed(crowded, "system", **nothing), "critical", kind=LayerKind.GROUPED)

    notes = judged(odd).notes

    assert verdict(odd) is Verdict.UNPROVEN
    assert [note.code for note in notes if note not in odd.notes] == ["unproven_shape"]
    assert str(shape_of(odd)) in notes[-1].message


def test_a_row_that_is_kept_replaces_the_older_one_and_can_be_read_again(crowded, row_of, tmp_path):
    path = tmp_path / "shapes.json"
    old, new = row_of(crowded, Verdict.GOOD), row_of(crowded, Verdict.BAD, ended="stall")

    keep(keep(table(), old, path), new, path)

    assert proven_shapes(path).rows == (new,)


def test_the_promise_is_sharper_for_the_system_layer():
    assert is_kept({"system": 99.0, "owning": 101.0, "open": 999.0})
    assert not is_kept({"system": 101.0, "open": 50.0})
    assert not is_kept({"system": 5.0, "open": 1001.0})


def test_every_row_of_the_table_was_judged_by_the_promise():
    for row in proven_shapes().rows:
        holds = row.loads and not row.ended and all(map(is_kept, row.worst_ms.values()))
        assert holds == (row.verdict is Verdict.GOOD), row.shape
        assert row.seconds > 0, row.shape


@pytest.mark.parametrize("is_steered", [True, False], ids=["steered", "static"])
@pytest.mark.parametrize("cpus", MACHINES)
def test_no_plan_that_the_compiler_makes_has_a_shape_known_to_starve(cpus, is_steered):
    made = emitted(MACHINES[cpus], is_steered=is_steered)

    bad = {(str(shape), cpus) for shape, plan in made.items() if verdict(plan) is Verdict.BAD}
    assert bad <= NOT_KEPT_ONCE


def test_a_table_is_json_that_any_reader_takes(crowded, row_of, tmp_path):
    path = tmp_path / "shapes.json"

    keep(table(), row_of(crowded, Verdict.GOOD, worst_ms={"all": {"system": 3.5}}), path)

    assert json.loads(path.read_text())["rows"][0]["worst_ms"]["all"] == {"system": 3.5}
