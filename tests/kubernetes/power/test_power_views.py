"""``temper power status``, ``profiles`` and ``explain`` of a real cluster, and by kubectl."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.kubernetes.power.conftest import GROUP
from tests.patience import PATIENCE_S

TEMPER = str(Path(sys.executable).with_name("temper"))


@pytest.fixture
def temper(cluster):
    def run(*arguments):
        return subprocess.run(
            [TEMPER, *arguments],
            env={**os.environ, **cluster.environment},
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    return run


@pytest.fixture
def twin(yard, cluster):
    """A NodeTwin of the node of this test."""
    path = f"{GROUP}/nodetwins"
    made = {
        "apiVersion": "joulie.io/v1alpha1",
        "kind": "NodeTwin",
        "metadata": {"name": yard.node},
        "spec": {"nodeName": yard.node, "profile": "eco"},
    }
    assert cluster.client.post(path, json=made).status_code == 201
    status = {
        "schedulableClass": "eco",
        "predictedPowerHeadroomScore": 76.5,
        "effectiveCapState": {"cpuPct": 60, "gpuPct": 100},
        "lastUpdated": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    patched = cluster.client.patch(
        f"{path}/{yard.node}/status",
        json={"status": status},
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert patched.status_code == 200
    yield yard.node
    cluster.client.delete(f"{path}/{yard.node}")


@pytest.mark.parametrize("words", [("power",), ("k8s", "power")])
def test_the_nodes_of_a_cluster_are_shown_by_both_commands(temper, twin, words):
    shown = temper(*words, "status")
    rows = json.loads(temper(*words, "status", "--output", "json").stdout)["nodes"]

    (row,) = (each for each in rows if each["node"] == twin)
    assert (row["schedulable_class"], row["headroom"], row["cpu_pct"]) == ("eco", 76.5, 60)
    assert f"{twin} " in shown.stdout
    assert shown.returncode in (0, 1)


def test_a_profile_that_the_operator_wrote_is_listed_and_explained(temper, yard):
    yard.operator()
    yard.run("solver", annotations={"joulie.io/workload-class": "performance"})
    yard.classified("pod-solver")

    listed = temper("power", "profiles", "-n", yard.namespace)
    explained = temper("power", "explain", f"{yard.namespace}/solver")

    (row,) = listed.stdout.splitlines()[1:]
    assert row.split()[:3] == [yard.namespace, "pod-solver", "performance"]
    assert "hints only (no metrics available)" in explained.stdout
    assert "priorityClassName temper-high" in explained.stdout
    assert explained.returncode == 1


def test_a_workload_without_a_profile_is_one_line(temper, yard):
    done = temper("power", "explain", f"{yard.namespace}/nobody")

    assert (done.returncode, done.stderr) == (
        2,
        f"temper: {yard.namespace}/nobody: has no WorkloadProfile\n",
    )
