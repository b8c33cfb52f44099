"""``temper power classify --cases``: documents in, statuses out, bad input in one line."""

import json

import pytest
from click.testing import CliRunner

import temper_plugin_power
from temper_core import DocumentError
from temper_core.testing import assert_keeps_contract
from temper_plugin_power.commands.power import command


def classified(tmp_path, cases, *options):
    """Run the command on *cases*. Return what it prints."""
    path = tmp_path / "cases.json"
    path.write_text(cases if isinstance(cases, str) else json.dumps(cases))
    arguments = ["classify", "--cases", str(path), *options]
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.stdout


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_power, "power")


@pytest.mark.parametrize("metrics", [{}, {"metrics": None}, {"metrics": {}}])
def test_a_case_without_metrics_follows_from_its_hints(tmp_path, metrics):
    (status,) = json.loads(classified(tmp_path, [metrics]))

    assert status["classificationReason"] == "hints only (no metrics available)"
    assert status["confidence"] == 0.3


@pytest.mark.parametrize(
    "metrics", [{"cpuUtilPct": 0, "gpuUtilPct": 0}, {"keplerUsed": False}, {"totalEnergyJ": 0}]
)
def test_metrics_of_zero_are_metrics(tmp_path, metrics):
    (status,) = json.loads(classified(tmp_path, [{"metrics": metrics}]))

    assert (status["cpu"]["intensity"], status["cpu"]["bound"]) == ("low", "io")
    assert status["classificationReason"] == (
        "cpu-intensity=low (util 0%<30%); cpu-bound=io (util <20%)"
    )


def test_every_metric_is_taken_as_given_and_the_order_is_kept(tmp_path):
    metrics = {
        "cpuUtilPct": 40,
        "memoryPressurePct": 61,
        "gpuUtilPct": 30.5,
        "cpuBoundRatio": 0.2,
        "memoryBoundRatio": 0.5,
        "keplerUsed": True,
        "totalEnergyJ": 10,
        "cpuEnergyJ": 4,
        "dramEnergyJ": 4,
        "gpuEnergyJ": 2,
        "gpuDominant": True,
    }

    first, second = json.loads(classified(tmp_path, [{}, {"metrics": metrics}]))

    assert first["confidence"] == 0.3
    assert second["confidence"] == 0.7
    assert second["gpu"] == {
        "intensity": "medium",
        "bound": "memory",
        "avgUtilizationPct": 30.5,
        "capSensitivity": "medium",
    }
    assert second["classificationReason"].split("; ") == [
        "cpu-intensity=medium (util 40%)",
        "cpu-bound=mixed (GPU dominant)",
        "kepler override: cpu-bound=memory (mem-energy ratio 0.50>0.40)",
        "gpu-intensity=medium (util 30%)",
    ]


def test_labels_and_the_derived_class(tmp_path):
    hot = {"metrics": {"cpuUtilPct": 99}}
    eco = {**hot, "labels": {"joulie.io/power-profile": "eco"}, "annotations": None}

    statuses = json.loads(classified(tmp_path, [hot, eco], "--derive-class"))

    assert [each["criticality"]["class"] for each in statuses] == ["performance", "standard"]


def test_a_table_has_a_line_for_each_case(tmp_path):
    head, *lines = classified(
        tmp_path, [{}, {"metrics": {"cpuUtilPct": 90}}], "--output", "table"
    ).splitlines()

    assert head.split() == ["CASE", "CLASS", "SUMMARY", "REASON"]
    assert [line.split()[0] for line in lines] == ["0", "1"]
    assert "medium-confidence cpu=high/compute" in lines[1]


@pytest.mark.parametrize(
    ("cases", "complaint"),
    [
        ("[", "is not JSON: Expecting value: line 1 column 2 (char 1)"),
        ({}, "document: must be a list, not {}"),
        ([{}, 3], "[1]: must be a table, not 3"),
        ([{"metrics": {"cpuUtilPct": "90"}}], "[0].metrics.cpuUtilPct: must be a number, not '90'"),
        ([{"metrics": {"cpuUtilPct": True}}], "[0].metrics.cpuUtilPct: must be a number, not True"),
        ([{"metrics": {"gpuUtilPct": -1}}], "[0].metrics.gpuUtilPct: must be >= 0: -1.0"),
        ('[{"metrics": {"totalEnergyJ": NaN}}]', "[0].metrics.totalEnergyJ: must be a finite"),
        ([{"metrics": {"keplerUsed": 1}}], "[0].metrics.keplerUsed: must be true or false, not 1"),
        ([{"metrics": {"cpuUtil": 1}}], "[0].metrics: unknown key 'cpuUtil'; allowed are cpuBound"),
        ([{"metrics": [1]}], "[0].metrics: must be a table, not [1]"),
        ([{"metric": {}}], "[0]: unknown key 'metric'; allowed are annotations, labels, metrics"),
        ([{"annotations": {"a": True}}], "[0].annotations.a: must be a string, not True"),
        ([{"labels": ["eco"]}], "[0].labels: must be a table, not ['eco']"),
        (f"[{'[' * 400}{']' * 400}]", "[0]: must be a table, not [["),
        ("[" * 100_000, "is not JSON: it is nested too deeply"),
    ],
)
def test_bad_input_is_one_line_with_file_place_value_and_what_is_allowed(
    tmp_path, cases, complaint
):
    with pytest.raises(DocumentError) as refused:
        classified(tmp_path, cases)

    (line,) = refused.value.lines
    assert line.startswith(f"{tmp_path}/cases.json: {complaint}")
    assert refused.value.exit_code == 2


def test_a_file_that_is_missing_is_named(tmp_path):
    path = tmp_path / "none.json"

    done = CliRunner().invoke(command, ["classify", "--cases", str(path)])

    assert str(done.exception) == f"{path}: No such file or directory"
