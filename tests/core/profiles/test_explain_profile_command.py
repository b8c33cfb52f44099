import json

import pytest
from click.testing import CliRunner

from temper_core import InputError
from temper_core.cli.profiles import command

PROFILE = """
id = "shop-db"
extends = "mysql-innodb"
[fingerprint]
images = ["registry.example/db:*"]
"""


@pytest.fixture
def explain(tmp_path, write):
    """Explain the profile of a pod of that image, request and annotation."""

    def run(*arguments, image="registry.example/db:8.4", annotation=None):
        write("shop-db.toml", PROFILE)
        metadata = {"name": "db", "namespace": "shop", "uid": "u-1"}
        if annotation is not None:
            metadata["annotations"] = {"temper.codes/workload-profile": annotation}
        container = {"name": "c", "image": image, "resources": {"requests": {"cpu": "2250m"}}}
        pod = {"metadata": metadata, "spec": {"priority": 100000, "containers": [container]}}
        pods, machine = tmp_path / "pods.json", tmp_path / "machine.toml"
        pods.write_text(json.dumps({"kind": "PodList", "items": [pod]}))
        machine.write_text("cores = 8\nthreads_per_core = 2\n")
        given = ["--pods", pods, "--machine", machine, "--profiles", write.directory]
        return CliRunner().invoke(command, ["explain", "db", *map(str, given), *arguments])

    return run


def test_why_and_what_becomes_of_each_group_is_told(explain):
    result = explain()

    assert result.exit_code == 0
    assert "profile  shop-db: image registry.example/db:8.4 is shop-db's" in result.stdout
    assert "extends mysql-innodb (builtin-profiles)" in result.stdout
    assert "2250m x 0.85 = 1.9125, so 2 whole cores" in result.stdout
    assert "shop-db.connections.high: a layer of its own: exclusive" in result.stdout
    assert "group    rest, yield: all others" in result.stdout


def test_the_same_is_told_in_json(explain):
    document = json.loads(explain("--output", "json", "--steered").stdout)

    assert document["profile_extends"] == ["mysql-innodb (builtin-profiles)"]
    assert [group["name"] for group in document["groups"]] == [
        "connections",
        "accepting",
        "innodb",
        "replication",
        "unnamed",
        "rest",
    ]


def test_why_there_is_none_is_told(explain):
    result = explain(annotation="nonsense")

    assert result.exit_code == 0
    assert "profile  none: annotation temper.codes/workload-profile: nonsense, but" in result.stdout


def test_without_a_plan_of_its_own_steering_cannot_be_asked_for():
    result = CliRunner().invoke(command, ["explain", "db", "--steered"])

    assert result.exit_code == 2
    assert "--steered needs --pods" in result.stderr


def test_an_unknown_pod_is_one_line(explain, tmp_path):
    explain()

    result = CliRunner().invoke(
        command,
        ["explain", "nobody", "--pods", str(tmp_path / "pods.json"),
         "--machine", str(tmp_path / "machine.toml")],
    )  # fmt: skip

    assert isinstance(result.exception, InputError)
