import json
from pathlib import Path

import pytest

from temper_core.engine.binary import print_and_exit, verify_offline
from temper_core.engine.capabilities import capabilities_of
from temper_core.engine.configuration_check import check
from temper_core.plan import plan_document, render_engine

CRITICAL, HIGH = 1_000_000, 100_000
LAYER_KEYS = {
    "name",
    "kind",
    "cpus_min",
    "cpus_max",
    "exclusive",
    "protected",
    "preempt",
    "slice_us",
    "weight",
    "matches",
    "pods",
    "hint",
}


@pytest.fixture
def full_plan(plan, pod, mysql, with_image):
    """A plan with a layer of every kind, and with a regular expression."""
    database = with_image(pod("db", CRITICAL, 1500, 1500), "mysql:8")
    crowd = [pod(f"web-{n:02}", None, 50) for n in range(40)]
    return plan(database, pod("api", HIGH, 500), pod("batch"), *crowd, profiles=[mysql], cores=16)


def test_each_layer_is_one_line_of_the_engines_json(full_plan):
    text = render_engine(full_plan)

    layers = json.loads(text)
    assert text.count("\n") == len(layers) + 2
    assert [layer["name"] for layer in layers] == [
        "system",
        "mysql.connections.critical",
        "critical",
        "high",
        "normal",
        "open",
    ]
    assert layers[1]["kind"] == {
        "Confined": {
            "util_range": [0.4, 0.7],
            "cpus_range": [4, 4],
            "protected": True,
            "min_exec_us": 0,
            "preempt": False,
            "exclusive": True,
            "slice_us": 5000,
            "weight": 1000,
        }
    }
    assert layers[-1]["matches"] == [[]]


def test_an_open_layer_has_none_of_the_options_that_only_owners_have(plan):
    kind = json.loads(render_engine(plan(cores=1)))[-1]["kind"]

    assert not {"util_range", "cpus_range", "protected"} & kind["Open"].keys()


def test_to_the_engine_the_open_layer_owns_what_no_other_layer_may(full_plan):
    kind = json.loads(render_engine(full_plan))[-1]["kind"]

    owned = sum(layer.cpus_max or 0 for layer in full_plan.layers)
    left = len(full_plan.machine.cpus) - owned
    assert left > 0
    assert kind["Grouped"]["cpus_range"] == [left, left]
    assert not kind["Grouped"]["preempt"]


def test_where_the_system_layer_owns_nothing_it_lives_on_what_nobody_owns(plan, pod):
    layers = json.loads(render_engine(plan(pod("api", HIGH, 100), cores=2)))

    kinds = {layer["name"]: layer["kind"] for layer in layers}
    assert {name: [*kind] for name, kind in kinds.items()} == {
        "system": ["Open"],
        "high": ["Confined"],
        "open": ["Open"],
    }
    assert kinds["system"]["Open"]["preempt"]


@pytest.mark.parametrize("version", [None, "1.0.19", "1.0.23", "1.1.0"])
def test_the_check_finds_nothing_to_say(full_plan, version):
    assert check(render_engine(full_plan), capabilities_of(version), cpus=32) == ()


@pytest.mark.parametrize("cores", [1, 2, 4, 64])
def test_the_engine_itself_takes_the_plan(plan, pod, mysql, with_image, engine, cores):
    database = with_image(pod("db", CRITICAL, 1500), "mysql:8")
    crowd = [pod(f"web-{n:02}", HIGH, 50, cgroups=(f"a\\x2d{n}.slice/",)) for n in range(40)]

    made = plan(database, *crowd, pod("x", None, 10), profiles=[mysql], cores=cores)

    text = render_engine(made)
    assert print_and_exit(engine, text)[0]
    if not Path("/sys/kernel/sched_ext").exists():  # elsewhere it would attach
        is_taken, words = verify_offline(engine, text)
        assert is_taken, words


def test_the_document_keeps_its_promise(full_plan):
    document = plan_document(full_plan, generation=7)

    assert document.keys() == {
        "schema_version",
        "generation",
        "steered",
        "machine",
        "layers",
        "assignments",
        "notes",
    }
    assert (document["schema_version"], document["generation"]) == (1, 7)
    assert all(layer.keys() >= LAYER_KEYS for layer in document["layers"])
    assert all(
        {"pod", "uid", "tier", "profile", "reason"} <= each.keys()
        for each in document["assignments"]
    )
    assert all(note.keys() == {"code", "subject", "message"} for note in document["notes"])
    assert json.loads(json.dumps(document)) == document


def test_the_document_names_every_pod_of_a_layer_once(full_plan):
    layers = {layer["name"]: layer for layer in plan_document(full_plan)["layers"]}

    assert layers["mysql.connections.critical"]["pods"] == ["default/db"]
    assert layers["mysql.connections.critical"]["group_pods"] == ["default/db"]
    assert layers["open"]["pods"] == ["default/batch", "default/db"]
    assert layers["open"]["group_pods"] == []
    assert layers["open"]["cpus_max"] is None


def test_the_configuration_says_nothing_that_changes_with_a_pod_of_the_same_size(plan, pod):
    first, second = (plan(pod("a", HIGH, request, 2000)) for request in (100, 1900))

    assert first != second
    assert render_engine(first) == render_engine(second)
