"""``temper power status``, ``profiles`` and ``explain`` on objects of a file."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from temper_core import DocumentError, InputError
from temper_plugin_power.commands.power import command


def twin(name, node_class="performance", cpu_pct=100, age_s=0):
    return {
        "kind": "NodeTwin",
        "metadata": {"name": name},
        "spec": {"nodeName": name, "profile": "eco"},
        "status": {
            "schedulableClass": node_class,
            "predictedPowerHeadroomScore": 80,
            "predictedCoolingStressScore": 20.5,
            "predictedPsuStressScore": 0,
            "effectiveCapState": {"cpuPct": cpu_pct, "gpuPct": 100},
            "hardwareDensityScore": 12.5,
            "lastUpdated": (datetime.now(UTC) - timedelta(seconds=age_s)).isoformat(),
        },
    }


def profile(name="solver", kind="Deployment", namespace="shop", **changes):
    status = {
        "criticality": {"class": "performance"},
        "migratability": {"reschedulable": False},
        "cpu": {"intensity": "high", "bound": "compute", "capSensitivity": "high"},
        "gpu": {"intensity": "none", "bound": "none", "capSensitivity": "none"},
        "classificationReason": "cpu-intensity=high (util 90%≥75%); cpu-bound=compute",
        "confidence": 0.7,
        "hints": ["criticality.class"],
        "evidence": {"pods": 3, "memoryPressurePct": 20.0},
        **changes,
    }
    return {
        "kind": "WorkloadProfile",
        "metadata": {"name": f"{kind}-{name}".lower(), "namespace": namespace},
        "spec": {"workloadRef": {"kind": kind, "name": name}},
        "status": status,
    }


def pod(name="solver-77f-abc", annotations=None, **spec):
    owner = {"kind": "ReplicaSet", "name": "solver-77f", "controller": True}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "labels": {"pod-template-hash": "77f"},
            "annotations": annotations or {},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "app"}], **spec},
    }


@pytest.fixture
def run(tmp_path):
    def running(name, objects, *options):
        path = tmp_path / "objects.json"
        text = objects if isinstance(objects, str) else json.dumps({"items": objects})
        path.write_text(text)
        arguments = [name, *options, "--objects", str(path)]
        done = CliRunner().invoke(command, arguments, standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return done

    return running


def document(done):
    return json.loads(done.stdout)


def test_status_has_totals_and_a_line_for_each_node(run):
    done = run("status", [twin("n2", "eco", 60), twin("n1"), twin("n3", "draining")])

    totals, _, head, *lines = done.stdout.splitlines()
    assert totals == "3 nodes, 1 performance, 1 eco, 1 draining, 0 unknown, 0 stale"
    assert head.split() == [
        *("NODE", "CLASS", "HEADROOM", "COOLING", "PSU", "CPU-CAP", "GPU-CAP", "DENSITY", "AGE")
    ]
    assert lines[1].split()[:8] == ["n2", "eco", "80.0", "20.5", "0.0", "60%", "100%", "12.5"]
    assert done.return_value == 0


@pytest.mark.parametrize(("age_s", "code"), [(290, 0), (310, 1)])
def test_a_stale_twin_is_a_finding(run, age_s, code):
    done = run("status", [twin("n1", age_s=age_s)], "--output", "json")

    assert document(done)["totals"]["stale"] == code
    assert done.return_value == code


def test_a_cluster_without_twins_has_no_nodes(run):
    done = run("status", [])

    assert done.stdout == "0 nodes, 0 performance, 0 eco, 0 draining, 0 unknown, 0 stale\n"
    assert done.return_value == 0


@pytest.mark.parametrize(
    ("pods", "has_suggestion"),
    [
        ([pod()], True),
        ([pod(priorityClassName="temper-high", priority=100_000)], False),
        ([pod(annotations={"joulie.io/workload-class": "standard"})], False),
        ([], False),
    ],
)
def test_a_performance_workload_without_a_tier_is_told_which_one(run, pods, has_suggestion):
    objects = [profile(), *pods]
    explained = run("explain", objects, "shop/solver")
    status = run("status", objects, "--output", "json")

    assert ("priorityClassName temper-high" in explained.stdout) == has_suggestion
    assert bool(document(status)["suggestions"]) == has_suggestion
    assert explained.return_value == status.return_value == int(has_suggestion)


def test_a_pod_whose_annotation_says_performance_needs_no_profile(run):
    annotated = pod(annotations={"joulie.io/workload-class": "performance"})

    (told,) = document(run("status", [annotated], "--output", "json"))["suggestions"]

    assert told.startswith("shop/Deployment/solver is of class performance")


def test_a_long_text_of_one_profile_lengthens_no_line_of_another(run):
    long = profile("long", classificationReason="none", cpu={"bound": "x" * 100_000})
    lines = run(
        "profiles", [long, *(profile(f"solver-{n}") for n in range(50))]
    ).stdout.splitlines()
    assert "x" * 254 in lines[1]
    assert max(len(line) for line in lines[2:]) < 500


def test_profiles_are_listed_by_namespace_kind_and_name(run):
    objects = [profile("b"), profile("a", namespace="z"), profile("a")]

    lines = run("profiles", objects).stdout.splitlines()

    assert [line.split()[:2] for line in lines] == [
        ["NAMESPACE", "NAME"],
        ["shop", "deployment-a"],
        ["shop", "deployment-b"],
        ["z", "deployment-a"],
    ]
    assert lines[1].endswith("cpu-intensity=high (util 90%≥75%); cpu-bound=compute")
    (only,) = document(run("profiles", objects, "-n", "z", "--output", "json"))["profiles"]
    assert (only["namespace"], only["cpu_bound"]) == ("z", "compute")


def test_an_explanation_names_sources_rules_measures_and_consumers(run):
    explained = document(run("explain", [profile()], "shop/solver", "--output", "json"))

    fields = {each["field"]: each for each in explained["fields"]}
    assert fields["criticality.class"]["source"] == "annotation"
    assert fields["migratability.reschedulable"]["source"] == "default"
    assert fields["cpu.capSensitivity"] == {
        "field": "cpu.capSensitivity",
        "value": "high",
        "source": "derived",
        "counts": True,
    }
    assert explained["rules"] == ["cpu-intensity=high (util 90%≥75%)", "cpu-bound=compute"]
    assert explained["evidence"] == {"pods": 3, "memoryPressurePct": 20.0}
    assert {each["consumer"]: each["effect"] for each in explained["consumers"]} == {
        "filter": "kept off eco and draining nodes",
        "score": "loses 16.0 points on a node whose CPUs are capped to 60 %",
        "guard": "keeps its node from becoming an eco node: class performance",
        "policy": "counts as 1.5 pods by its intensity",
    }


@pytest.mark.parametrize(("confidence", "counts"), [(0.5, True), (0.4, False)])
def test_what_was_derived_counts_from_the_confidence_on(run, confidence, counts):
    explained = document(
        run("explain", [profile(confidence=confidence)], "shop/solver", "--output", "json")
    )

    fields = {each["field"]: each["counts"] for each in explained["fields"]}
    effects = {each["consumer"]: each["effect"] for each in explained["consumers"]}
    assert fields["cpu.capSensitivity"] is counts
    assert fields["criticality.class"] is True
    assert effects["score"].startswith("loses" if counts else "no penalty")
    assert effects["policy"].startswith(f"counts as {1.5 if counts else 1:g} pods")


@pytest.mark.parametrize(
    ("hints", "reschedulable", "effect"),
    [
        ([], False, "does not keep"),
        (["migratability.reschedulable"], False, "keeps its node from becoming an eco node: not"),
        (["migratability.reschedulable"], True, "does not keep"),
    ],
)
def test_only_an_explicit_no_keeps_a_node_of_a_standard_workload(run, hints, reschedulable, effect):
    standard = profile(
        criticality={"class": "standard"},
        migratability={"reschedulable": reschedulable},
        hints=hints,
    )

    explained = document(run("explain", [standard], "shop/solver", "--output", "json"))

    effects = {each["consumer"]: each["effect"] for each in explained["consumers"]}
    assert effects["guard"].startswith(effect)
    assert effects["policy"] == "asks for no performance node"


@pytest.mark.parametrize(
    "named", ["shop/solver", "shop/deployment-solver", "shop/deployment/solver"]
)
def test_a_workload_is_found_by_its_name_its_objects_name_and_its_kind(run, named):
    assert run("explain", [profile()], named).stdout.startswith("shop/Deployment/solver\n")


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("solver", "must be NAMESPACE/NAME"),
        ("shop/", "must be NAMESPACE/NAME"),
        ("shop/other", "has no WorkloadProfile$"),
        ("shop/slover", r"has no WorkloadProfile; did you mean 'shop/solver'\?"),
        ("default/solver", "has no WorkloadProfile"),
        ("shop/twice", "add the kind, one of Deployment, Job"),
    ],
)
def test_another_name_is_refused(run, named, problem):
    objects = [profile(), profile("twice"), profile("twice", kind="Job")]

    with pytest.raises(InputError, match=problem):
        run("explain", objects, named)


@pytest.mark.parametrize("name", ["status", "profiles"])
def test_a_file_that_is_not_json_is_refused(run, name):
    with pytest.raises(DocumentError, match="is not JSON"):
        run(name, "{")


@pytest.mark.parametrize("name", ["status", "profiles"])
def test_objects_of_other_kinds_and_shapes_are_skipped(run, name):
    assert run(name, [1, None, {"kind": "Node"}, {"kind": "Pod", "metadata": 7}]).return_value == 0


def test_a_field_by_traits_is_told_from_one_by_an_annotation(run):
    evidence = {"threadProfile": "db", "traits": ["cpu.bound"]}
    made = profile(hints=["criticality.class", "cpu.bound"], evidence=evidence)

    fields = document(run("explain", [made], "shop/solver", "--output", "json"))["fields"]

    sources = {each["field"]: each["source"] for each in fields}
    assert sources["cpu.bound"] == "thread profile"
    assert sources["criticality.class"] == "annotation"
