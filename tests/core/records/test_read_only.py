"""The tables of the records that plugins are given cannot be changed in place."""

import copy
import json
import pickle

import attrs
import pytest

from temper_core.records import plans, pods, snapshots, steering
from temper_core.records.read_only import ReadOnlyDict, read_only
from temper_core.testing import make_machine, make_pod, make_snapshot

TABLE = ReadOnlyDict({"a": 1})
CHANGES = {
    "set": lambda table: table.__setitem__("b", 2),
    "delete": lambda table: table.__delitem__("a"),
    "merge": lambda table: table.__ior__({"b": 2}),
    "clear": lambda table: table.clear(),
    "pop": lambda table: table.pop("a"),
    "popitem": lambda table: table.popitem(),
    "setdefault": lambda table: table.setdefault("b", 2),
    "update": lambda table: table.update(b=2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_change_is_taken(change):
    with pytest.raises(TypeError, match="read-only"):
        change(TABLE)

    assert TABLE == {"a": 1}


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_a_copy_by_a_module_stays_read_only(copied):
    again = copied(TABLE)

    assert (again, type(again)) == ({"a": 1}, ReadOnlyDict)


def test_a_merged_table_and_json_are_plain():
    assert type(TABLE | {"b": 2}) is dict
    assert type({**TABLE}) is dict
    assert json.loads(json.dumps(TABLE)) == {"a": 1}


def test_the_original_is_not_shared_and_other_values_are_for_the_validator():
    original = {"a": 1}
    table = read_only(original)
    original["a"] = 2

    assert table == {"a": 1}
    assert read_only("text") == "text"


def mapping_fields():
    for module in (plans, pods, snapshots, steering):
        for name, record in vars(module).items():
            if attrs.has(record) and record.__module__ == module.__name__:
                for each in attrs.fields(record):
                    if "Mapping" in str(each.type):
                        yield pytest.param(each, id=f"{name}.{each.name}")


@pytest.mark.parametrize("each", list(mapping_fields()))
def test_each_table_of_a_record_is_read_only(each):
    assert each.converter is read_only


def test_a_plan_does_not_give_its_own_table_of_layers():
    plan = plans.LayerPlan(make_machine(), ())

    with pytest.raises(TypeError):
        plan.layer_by_pod["shop/web"] = "critical"


def test_a_pod_of_a_plugin_without_a_table_is_refused():
    with pytest.raises(TypeError):
        attrs.evolve(make_pod("web"), labels="text")


def test_a_snapshot_is_still_made_into_plain_records():
    document = attrs.asdict(make_snapshot(pressure_events={"cpu": 1}))

    assert type(document["pressure_events"]) is dict
