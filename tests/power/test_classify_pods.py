"""``temper power classify --pods``: a PodList and a file of metrics."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from temper_core import DocumentError
from temper_plugin_power.commands.power import command

ROOT = Path(__file__).parents[2]
MIXED = ROOT / "examples/podlists/mixed-node.yaml"
ENERGY = {"cpu_rate": 1.0, "kepler_package_rate": 9, "kepler_dram_rate": 1}


def classify(tmp_path, pods, metrics=None, *options):
    """Run the command. Return its result."""
    arguments = ["classify", "--pods", str(pods), *options]
    if metrics is not None:
        path = tmp_path / "metrics.json"
        path.write_text(json.dumps(metrics))
        arguments += ["--metrics", str(path)]
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def test_a_podlist_alone_gives_profiles_by_hints(tmp_path):
    done = classify(tmp_path, MIXED)

    printed = json.loads(done.stdout)
    assert printed["kind"] == "List"
    assert {item["kind"] for item in printed["items"]} == {"WorkloadProfile"}
    assert {item["status"]["confidence"] for item in printed["items"]} == {0.3}
    assert done.return_value == 0


def test_metrics_are_found_by_namespace_and_name(tmp_path):
    metrics = {"window_s": 300, "dialect": "kepler-0.10", "pods": {"shop/mysql-0": ENERGY}}

    done = classify(tmp_path, MIXED, metrics)

    items = {item["metadata"]["name"]: item for item in json.loads(done.stdout)["items"]}
    mysql = items["statefulset-mysql"]
    assert mysql["spec"]["nodeName"] == "worker-3"
    assert mysql["status"]["cpu"]["avgUtilizationPct"] == pytest.approx(44.4, abs=0.1)
    assert mysql["status"]["evidence"]["windowSeconds"] == 300
    assert mysql["status"]["evidence"]["energyBound"] == "unknown"


def test_a_table_has_a_line_for_each_workload(tmp_path):
    head, *lines = classify(tmp_path, MIXED, None, "--output", "table").stdout.splitlines()

    assert head.split() == [
        *("NAMESPACE", "NAME", "CLASS", "CONFIDENCE", "CPU-BOUND", "GPU-BOUND", "REASON")
    ]
    assert any(line.split()[:2] == ["shop", "statefulset-mysql"] for line in lines)


def test_metrics_of_unknown_pods_are_told(tmp_path):
    done = classify(tmp_path, MIXED, {"pods": {"shop/gone": {"cpu_rate": 1}}})

    assert done.stderr == "metrics of pods that are not in the list: shop/gone\n"
    assert done.return_value == 0


def test_metrics_of_a_pod_that_has_ended_are_left_out_without_a_word(tmp_path):
    ended = {
        "metadata": {"name": "job", "namespace": "shop", "uid": "1"},
        "spec": {"containers": [{"name": "app"}]},
        "status": {"phase": "Succeeded"},
    }
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"items": [ended, {"kind": "Node"}]}))

    done = classify(tmp_path, path, {"pods": {"shop/job": {"cpu_rate": 1}}})

    assert json.loads(done.stdout)["items"] == []
    assert (done.stderr, done.return_value) == ("", 0)


def test_an_invalid_pod_is_left_out_and_told(tmp_path):
    good = {
        "metadata": {"name": "web", "namespace": "shop", "uid": "1"},
        "spec": {"containers": [{"name": "app"}]},
    }
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"kind": "PodList", "items": [good, {"metadata": 3}, 7]}))

    done = classify(tmp_path, path)

    assert [item["metadata"]["name"] for item in json.loads(done.stdout)["items"]] == ["pod-web"]
    first, second = done.stderr.splitlines()
    assert first.startswith(f"left out: {path}: items[1]: metadata")
    assert second == f"left out: {path}: items[2]: must be a table"
    assert done.return_value == 1


@pytest.mark.parametrize("document", [[], 3, {"kind": "Node"}, {"kind": "List", "items": {}}])
def test_a_file_of_something_else_is_refused(tmp_path, document):
    path = tmp_path / "pods.json"
    path.write_text(json.dumps(document))

    with pytest.raises(DocumentError, match="must be a PodList, a List or a Pod"):
        classify(tmp_path, path)


@pytest.mark.parametrize(
    ("metrics", "complaint"),
    [
        ({"pods": {"a/b": {"cpu": 1}}}, "pods.a/b: unknown key 'cpu'; allowed are busiest_thread"),
        ({"pods": {"a/b": {"cpu_rate": -1}}}, "pods.a/b.cpu_rate: must be >= 0: -1.0"),
        ({"pods": {"a/b": {"cycles": 1e19}}}, "pods.a/b.cycles: must be <= 1e+18: 1e+19"),
        ({"pods": {"a/b": {"cpu_rate": "1"}}}, "pods.a/b.cpu_rate: must be a number, not '1'"),
        ({"window_s": 0}, "window_s: must be >= 1: 0"),
        ({"dialect": "kepler"}, "dialect: must be one of 'kepler-0.9', 'kepler-0.10', 'none'"),
        (
            {"pods": {"a/b": ENERGY}},
            "dialect: must be 'kepler-0.9' or 'kepler-0.10', since pods.a/b has energy of Kepler",
        ),
    ],
)
def test_bad_metrics_are_one_line_with_file_place_and_value(tmp_path, metrics, complaint):
    with pytest.raises(DocumentError) as refused:
        classify(tmp_path, MIXED, metrics)

    (line,) = refused.value.lines
    assert line.startswith(f"{tmp_path}/metrics.json: {complaint}")


@pytest.mark.parametrize(
    "arguments", [[], ["--cases", "a", "--pods", "b"], ["--cases", "a", "--metrics", "b"]]
)
def test_the_two_ways_are_not_mixed(arguments):
    done = CliRunner().invoke(command, ["classify", *arguments])

    assert done.exit_code == 2
    assert "give either --cases, or --pods with or without --metrics" in done.stderr
