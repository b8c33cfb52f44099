from pathlib import Path

import pytest

from temper_core import settings
from temper_core.node.podlist import read_pods
from temper_core.node.workloads import Workload

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("path", sorted((EXAMPLES / "podlists").iterdir()), ids=lambda it: it.name)
def test_every_example_list_has_pods_that_read_without_an_error(path):
    assert read_pods(path.read_text(), source=path.name)


def test_the_mixed_node_has_sizes_as_its_comments_and_the_guide_say():
    pods = read_pods((EXAMPLES / "podlists/mixed-node.yaml").read_text(), source="x")

    assert [
        (pod.name.split("-")[0], pod.cpu_request_millis, pod.cpu_limit_millis) for pod in pods
    ] == [
        ("mysql", 2250, 2250),
        ("nginx", 500, 2000),
        ("api", 500, 1500),
        ("report", 1000, None),
        ("cleaner", 0, None),
    ]


def test_the_example_rules_are_settings_with_quantities():
    found = settings.load(EXAMPLES / "workloads.toml").settings

    workloads = [Workload.of(rule) for rule in found.workloads]

    assert [workload.cpu_request_millis for workload in workloads] == [4000, 1500, None, None]
