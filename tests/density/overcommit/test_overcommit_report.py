"""The report on a cluster, from objects that the API server takes."""

import json

import pytest

from temper_plugin_density.overcommit.reporting import ClusterView, obstacles_of, report_on, stand
from tests.kube_client.large_lists import MANY, MOST_HELD, large, many, peak_of, written_kubeconfig
from tests.kube_client.scripted import Scripted, listing


@pytest.fixture
def server():
    server = Scripted()
    yield server
    server.close()


def test_a_report_holds_one_namespace_and_one_limit_range(server, tmp_path):
    metadata = {"name": "shop", "namespace": "shop"}
    namespace = large({"metadata": metadata})
    limits = [{"type": f"shop/{n}", "min": {"cpu": "0" * 4000 + "1"}} for n in range(300)]
    limit_range = large({"metadata": metadata, "spec": {"limits": limits}})
    server.lists = [many(namespace), many(limit_range), listing()]
    path = written_kubeconfig(tmp_path, server.access)

    peak, (text, _) = peak_of(lambda: report_on(path, "json"))

    (row,) = json.loads(text)
    assert peak < MOST_HELD
    assert len(row["findings"]) == 16 * MANY
    assert max(map(len, row["findings"])) < 200


@pytest.mark.parametrize("least", ["-1", "many", None])
def test_a_limit_range_whose_minimum_is_none_ends_no_report(least):
    limits = [{"type": "Container", "min": {"cpu": least}}]
    odd = {"metadata": {"name": "odd", "namespace": "shop"}, "spec": {"limits": limits}}

    (standing,) = stand(ClusterView(frozenset({"shop"}), (), (obstacles_of(odd),)))

    assert (standing.namespace, standing.findings) == ("shop", [])
