"""The CustomResourceDefinitions, and what the classifier writes into them."""

import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from hypothesis import given

from temper_core import Pod, parse_profile
from temper_plugin_power.classifier.classifying import classify
from temper_plugin_power.classifier.hints import read_hints
from temper_plugin_power.commands.power import command
from temper_plugin_power.operating.caps import CapShares, caps_of
from temper_plugin_power.operating.twin import Hardware
from temper_plugin_power.resources.definitions import DEFINITIONS, definitions
from temper_plugin_power.resources.kinds import NODE_TWIN, WORKLOAD_PROFILE
from temper_plugin_power.workloads.energy import Dialect
from temper_plugin_power.workloads.pods import MeasuredPod, PodMeasures
from temper_plugin_power.workloads.profiling import ProfilingChoices, profile_workloads
from temper_plugin_power.workloads.thread_profiles import ThreadProfiles
from tests.power.test_classifying import any_annotations, any_signals

NOW = datetime(2026, 11, 26, 8, 15, 4, tzinfo=UTC)
TYPES = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "array": list}


def misfits(value, schema, path=""):
    """Yield the paths at which *value* does not fit a schema of ours."""
    if schema["type"] == "object":
        for key, inner in value.items():
            if key in schema["properties"]:
                yield from misfits(inner, schema["properties"][key], f"{path}.{key}")
            else:
                yield f"{path}.{key}"
    elif not isinstance(value, TYPES[schema["type"]]) or value not in schema.get("enum", [value]):
        yield path
    elif schema["type"] == "array":
        for inner in value:
            yield from misfits(inner, schema["items"], f"{path}[]")
    elif not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield path


@pytest.mark.parametrize(
    ("status", "path"),
    [
        ({"confidence": 1.1}, ".confidence"),
        ({"cpu": {"bound": "none"}}, ".cpu.bound"),
        ({"hints": [3]}, ".hints[]"),
        ({"odd": 1}, ".odd"),
    ],
)
def test_a_status_that_does_not_fit_is_found(status, path):
    assert list(misfits(status, WORKLOAD_PROFILE["properties"]["status"])) == [path]


@given(any_annotations, any_signals)
def test_every_status_fits_the_schema(annotations, signals):
    status = classify(read_hints(annotations, {}), signals).status(NOW)

    assert list(misfits(status, WORKLOAD_PROFILE["properties"]["status"])) == []


THREADS = """
id = "web"
[traits]
cpu_bound = "memory"
[[thread_groups]]
name = "rest"
"""


def test_evidence_and_reference_fit_the_schema():
    measures = PodMeasures(1, 2, 3, 4, 5, 6, 7, 8, 9, 0.1, 0.2, 0.3, 5, 0.5)
    wanted = {"temper.codes/workload-profile": "web"}
    pod = MeasuredPod(Pod("1", "shop", "web", annotations=wanted), "n1", "", measures)
    choices = ProfilingChoices(thread_profiles=ThreadProfiles((parse_profile(THREADS, "a test"),)))

    (profile,) = profile_workloads([pod], dialect=Dialect.OLD, window_s=600, choices=choices)

    written = profile.as_object(NOW)
    parts = {key: written[key] for key in ("spec", "status")}
    assert list(misfits(parts, WORKLOAD_PROFILE)) == []
    assert set(written["status"]["evidence"]) == set(
        WORKLOAD_PROFILE["properties"]["status"]["properties"]["evidence"]["properties"]
    )


@pytest.mark.parametrize("has_gpu", [True, False])
@pytest.mark.parametrize("profile", ["eco", "performance"])
@pytest.mark.parametrize("in_watts", [True, False])
def test_caps_fit_the_schema(profile, has_gpu, in_watts):
    hardware = Hardware(1, 8, 200, has_gpu=has_gpu, gpus=1, max_watts_per_gpu=300)
    shares = CapShares(cpu_in_watts=in_watts, gpu_in_watts=in_watts)

    caps = caps_of(profile, shares, hardware)

    assert list(misfits(caps, NODE_TWIN["properties"]["spec"])) == []


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.kind)
def test_every_column_shows_a_field_of_the_schema_with_its_type(definition):
    for column in definition.columns:
        if column.path.startswith(".metadata"):
            continue
        schema = definition.schema
        for key in column.path.removeprefix(".").split("."):
            schema = schema["properties"][key]
        assert schema["type"] == column.type


def test_the_command_prints_a_list_for_kubectl():
    done = CliRunner().invoke(command, ["crds"])

    assert json.loads(done.stdout) == json.loads(json.dumps(definitions()))
    assert [item["metadata"]["name"] for item in definitions()["items"]] == [
        "workloadprofiles.joulie.io",
        "nodetwins.joulie.io",
        "nodehardwares.joulie.io",
    ]
