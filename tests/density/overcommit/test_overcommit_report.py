"""The report on a cluster, from objects that the API server takes."""

import pytest

from temper_plugin_density.overcommit.reporting import ClusterView, stand


@pytest.mark.parametrize("least", ["-1", "many", None])
def test_a_limit_range_whose_minimum_is_none_ends_no_report(least):
    limits = [{"type": "Container", "min": {"cpu": least}}]
    odd = {"metadata": {"name": "odd", "namespace": "shop"}, "spec": {"limits": limits}}

    (standing,) = stand(ClusterView(frozenset({"shop"}), (), (odd,)))

    assert (standing.namespace, standing.findings) == ("shop", [])
