import json
import re
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.observe.document import observe_document
from temper_core.observe.moments import rfc3339
from temper_core.observe.observer import Observer
from temper_core.records.layers import Layer
from temper_core.records.lint import Severity, Violation
from temper_core.records.machine import MachineShape
from temper_core.records.snapshots import (
    Mode,
    Observing,
    PluginState,
    PodSample,
    Pressure,
    PressureLine,
    SafeModeReason,
    Section,
    Status,
)
from temper_core.records.steering import SteeringState
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings.models import Settings
from temper_core.testing import make_snapshot, make_thread

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs" / "observe.schema.json").read_text(encoding="utf-8")
)
CONTRACT = {
    "": "schema_version at node mode reason generation engine machine layers threads pods"
    " pressure violations plugins overhead observing pressure_events sections",
    "layer": "name kind cpus cpus_used util tasks demoted reason",
    "thread": "tid tgid comm namespace pod container tier layer expected_layer cpu cpu_used"
    " run_delay_ratio waiting_s runs voluntary involuntary migrations policy nice rt_priority"
    " affinity age_s is_kthread",
    "pod": "short_lived_cpu_used run_delay switches throttled_s unthrottled_pressure quota_cores"
    " weight cpuset",
    "observing": "tier reason period_s asked_period_s stretched least_s unlisted",
    "machine": "architecture cores threads_per_core sockets numa_nodes llcs siblings",
}
TYPES = {
    "object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
    "integer": int, "number": (int, float),
}  # fmt: skip


def misfits(value, schema, path="$"):
    """Hold *value* against the part of JSON Schema that our schema uses; yield what is wrong."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in schema:
        yield from min(([*misfits(value, each, path)] for each in schema["anyOf"]), key=len)
        return
    kinds = schema.get("type", list(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(isinstance(value, TYPES[kind]) for kind in kinds):
        yield f"{path}: {value!r} is no {kinds}"
        return
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{path}: {value!r} is not allowed"
    if isinstance(value, int | float) and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        yield f"{path}: {value!r} is out of range"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{path}: {value!r} has another form"
    yield from misfits_below(value, schema, path)


def misfits_below(value, schema, path):
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from misfits(item, schema.get("items", {}), f"{path}[{index}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for key in set(schema.get("required", ())) - value.keys():
            yield f"{path}: lacks {key}"
        for key, item in value.items():
            if key not in known and "additionalProperties" not in schema:
                yield f"{path}: {key} is not in the schema"
            below = known.get(key, schema.get("additionalProperties", {}))
            yield from misfits(item, below, f"{path}.{key}")


def a_full_snapshot():
    layers = {
        Layer("critical", LayerKind.CONFINED, (), Tier.CRITICAL): (2, 3),
        Layer("open", LayerKind.OPEN, ((),)): (),
    }
    line = PressureLine(0.25, 0.1, 0.0, 17)
    pod = PodSample("shop", "db", "u1", Tier.CRITICAL, 3, 1.25, 0.5, 4096, "mysql")
    threads = [
        make_thread(f"t{n}", tid=n, cpu_used=n / 100, namespace="shop", pod="db", layer="critical",
                    expected_layer="critical", tier=Tier.CRITICAL)
        for n in range(1, 6)
    ]  # fmt: skip
    violation = Violation("smt_collision", Severity.ERROR, "cpu 2", "m", "f", {"n": 1}, 1.5e9, "l")
    return make_snapshot(
        *threads,
        make_thread("host", tid=99, cpu_used=0.001),
        layers=layers,
        pressure={"cpu": Pressure(line), "io": Pressure(line, line)},
        pods=(evolve(pod, pressure={"cpu": Pressure(line, line)}),),
        violations=(violation,),
        plugins=(PluginState("linter", "1", "temper-plugin-linter", ("h",), "active"),),
        sections={"shop": Section(2, {"orders": 7, "schema_version": "mine"})},
        defects=("something",),
    )


def test_every_key_of_the_contract_is_required_by_the_schema():
    for part, keys in CONTRACT.items():
        schema = SCHEMA["$defs"][part] if part else SCHEMA
        assert set(keys.split()) <= set(schema["required"])


def test_the_structural_check_finds_what_is_wrong():
    document = observe_document(a_full_snapshot(), 10)
    document["layers"][0]["util"] = "much"
    document["threads"][0]["run_delay_ratio"] = 2
    del document["node"]
    document["extra"] = 1

    assert sorted(misfits(document, SCHEMA)) == [
        "$.layers[0].util: 'much' is no ['number', 'null']",
        "$.threads[0].run_delay_ratio: 2 is out of range",
        "$: extra is not in the schema",
        "$: lacks node",
    ]


@pytest.mark.parametrize("top", [0, 2, 100])
def test_a_full_snapshot_fits_the_schema(top):
    document = observe_document(a_full_snapshot(), top)

    assert list(misfits(json.loads(json.dumps(document, allow_nan=False)), SCHEMA)) == []


def test_a_section_is_said_with_its_own_version_whatever_is_in_it():
    assert observe_document(a_full_snapshot(), 1)["sections"] == {
        "shop": {"orders": 7, "schema_version": 2}
    }


def test_a_real_observation_fits_the_schema():
    observer = Observer(MachineShape.uniform(2), Settings(), node="here")
    status = Status(Mode.SAFE_MODE, SafeModeReason.PREFLIGHT, "no sched_ext")
    documents = []
    for _ in range(2):
        documents.append(observe_document(observer.tick(plan=None, status=status), 5))
        time.sleep(0.05)
    observer.close()

    for document in documents:
        assert list(misfits(json.loads(json.dumps(document, allow_nan=False)), SCHEMA)) == []
    assert documents[1]["threads"]
    assert (documents[1]["mode"], documents[1]["reason"]) == ("safe_mode", "preflight")


@given(
    st.dictionaries(
        st.text() | st.integers() | st.none() | st.binary(),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text() | st.binary() | st.decimals(),
            lambda inner: st.lists(inner, max_size=3) | st.tuples(inner),
            max_leaves=4,
        )
        | st.integers(min_value=-(10**400), max_value=10**400),
        max_size=3,
    )
)
@settings(max_examples=60)
def test_evidence_of_any_kind_fits_the_schema(evidence):
    snapshot = a_full_snapshot()
    odd = evolve(snapshot.violations[0], evidence=evidence)

    document = observe_document(evolve(snapshot, violations=(odd,)), 3)

    assert list(misfits(json.loads(json.dumps(document, allow_nan=False)), SCHEMA)) == []


def test_evidence_that_cannot_even_be_written_is_named_by_its_type():
    class Unwritable:
        def __str__(self):
            raise ValueError("broken")

    snapshot = a_full_snapshot()
    odd = evolve(snapshot.violations[0], evidence={"seen": Unwritable()})

    document = observe_document(evolve(snapshot, violations=(odd,)), 3)

    assert document["violations"][0]["evidence"] == {"seen": "<Unwritable>"}


def test_layers_have_what_people_ask_for():
    layers = observe_document(a_full_snapshot(), 1)["layers"]

    asked = [{key: layer[key] for key in ("name", "cpus", "util")} for layer in layers]

    assert asked == [
        {"name": "critical", "cpus": [2, 3], "util": 0.075},
        {"name": "open", "cpus": [], "util": None},
    ]


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
def test_the_published_jq_example_works():
    document = json.dumps(observe_document(a_full_snapshot(), 1))

    done = subprocess.run(
        ["jq", "-c", ".layers[] | {name, cpus, util}"],
        input=document, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert done.stdout.splitlines()[1] == '{"name":"open","cpus":[],"util":null}'


def test_the_busiest_come_first_and_the_rest_of_each_pod_in_one_row():
    threads = observe_document(a_full_snapshot(), 2)["threads"]

    assert [thread["tid"] for thread in threads] == [5, 4, None, None]
    host, rest = threads[2], threads[3]
    assert (host["pod"], host["threads"], host["tier"]) == ("", 1, None)
    assert (rest["pod"], rest["comm"], rest["threads"]) == ("db", "rest", 3)
    assert (rest["cpu_used"], rest["layer"], rest["tier"]) == (0.06, "critical", "critical")


def test_a_rest_of_several_layers_names_none():
    threads = [make_thread(tid=n, layer=f"l{n}", expected_layer="same") for n in range(3)]

    [row] = observe_document(make_snapshot(*threads), 0)["threads"]

    assert (row["layer"], row["expected_layer"]) == ("", "same")


def test_pressure_is_told_for_the_node_and_by_pod():
    pressure = observe_document(a_full_snapshot(), 1)["pressure"]

    assert pressure["node"]["cpu"]["some"]["avg10"] == 0.25
    assert pressure["node"]["cpu"]["full"] is None
    assert pressure["pods"]["shop/db"]["cpu"]["full"]["total_us"] == 17


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), max_size=40), st.integers(0, 50))
def test_no_thread_is_lost_between_the_top_and_the_rest(uses, top):
    threads = [
        make_thread(tid=n + 1, cpu_used=use / 30, pod=f"p{n % 3}") for n, use in enumerate(uses)
    ]

    rows = observe_document(make_snapshot(*threads), top)["threads"]

    assert sum(row["threads"] for row in rows) == len(threads)
    assert sum(row["cpu_used"] for row in rows) == pytest.approx(sum(uses) / 30, abs=1e-4)
    assert sum(row["tid"] is not None for row in rows) == min(top, len(threads))


def test_a_moment_is_written_as_rfc_3339():
    moment = datetime(2026, 2, 3, 4, 5, 6, 700_000, UTC)

    assert rfc3339(moment.timestamp()) == "2026-02-03T04:05:06.700Z"
    assert rfc3339(0) == "1970-01-01T00:00:00.000Z"


def test_steering_is_told_with_its_reason_and_counters():
    state = SteeringState("hints", "why", threads=7, unresolved=("podabc",), by_hook={"fork": 3})

    document = observe_document(evolve(a_full_snapshot(), steering=state), 10)

    assert list(misfits(document, SCHEMA)) == []
    told = document["steering"]
    assert (told["mode"], told["reason"], told["threads"]) == ("hints", "why", 7)
    assert (told["unresolved"], told["by_hook"]) == (["podabc"], {"fork": 3})


def test_a_threads_hint_and_whether_its_layer_is_known_are_told():
    thread = make_thread("t", tid=3, hinted_layer="high", layer="open", layer_is_known=True)

    [row] = observe_document(make_snapshot(thread), 1)["threads"]
    [rest] = observe_document(make_snapshot(thread), 0)["threads"]

    for told in (row, rest):
        assert (told["hinted_layer"], told["layer"], told["layer_is_known"]) == (
            "high",
            "open",
            True,
        )


COUNTED = {"runs": 9, "voluntary": 7, "involuntary": 2, "migrations": 1}


def test_what_the_kernel_side_knows_of_a_thread_is_told():
    thread = make_thread(
        **COUNTED, policy="fifo", nice=-5, rt_priority=10, affinity=(1, 3), waiting_s=0.25
    )

    [row] = observe_document(make_snapshot(thread), 1)["threads"]

    assert {key: row[key] for key in COUNTED} == COUNTED
    assert (row["policy"], row["nice"], row["rt_priority"]) == ("fifo", -5, 10)
    assert (row["affinity"], row["waiting_s"]) == ([1, 3], 0.25)


def test_counts_that_a_tier_cannot_tell_are_null():
    document = observe_document(make_snapshot(make_thread(tid=1), make_thread(tid=2)), 1)

    for row in document["threads"]:
        assert {row[key] for key in COUNTED} == {None}
    assert list(misfits(document, SCHEMA)) == []


def test_a_rest_adds_up_the_counts_and_names_the_longest_wait():
    threads = [make_thread(tid=n, **COUNTED, policy="other", waiting_s=n / 10) for n in range(1, 4)]

    document = observe_document(make_snapshot(*threads), 0)

    [row] = document["threads"]
    assert {key: row[key] for key in COUNTED} == {k: 3 * count for k, count in COUNTED.items()}
    assert (row["policy"], row["waiting_s"], row["nice"]) == ("other", 0.3, None)
    assert list(misfits(document, SCHEMA)) == []


def test_a_pods_limits_and_throttling_are_told():
    pod = evolve(
        a_full_snapshot().pods[0],
        short_lived_cpu_used=0.2,
        run_delay=1.5,
        switches=40,
        throttled_s=0.75,
        quota_cores=1.5,
        weight=39,
        cpuset=(0, 1),
        unthrottled_pressure=0.125,
    )

    document = observe_document(make_snapshot(pods=(pod,)), 1)

    [told] = document["pods"]
    assert (told["short_lived_cpu_used"], told["run_delay"], told["switches"]) == (0.2, 1.5, 40)
    assert (told["quota_cores"], told["weight"], told["cpuset"]) == (1.5, 39, [0, 1])
    assert (told["throttled_s"], told["unthrottled_pressure"]) == (0.75, 0.125)
    assert list(misfits(document, SCHEMA)) == []


def test_how_the_node_is_looked_at_and_what_the_kernel_told_of_is_in_the_document():
    seen = make_snapshot(
        observing=Observing("proc", "bpf: not allowed", 10.0, 5.0, "too dear", 0.001, 7),
        pressure_events={"cpu": 3, "io": 0, "memory": 0},
    )

    document = observe_document(seen, 1)

    assert list(misfits(document, SCHEMA)) == []
    assert document["observing"] == {
        "tier": "proc",
        "reason": "bpf: not allowed",
        "period_s": 10.0,
        "asked_period_s": 5.0,
        "stretched": "too dear",
        "least_s": 0.001,
        "unlisted": 7,
    }
    assert document["pressure_events"] == {"cpu": 3, "io": 0, "memory": 0}
