"""A page of metrics of an operator in which all happens that can be told."""

from temper_kube.watch_status import WatchStatus
from temper_plugin_power.controller.classifier import RESULTS
from temper_plugin_power.controller.node_plans import plan_nodes
from temper_plugin_power.controller.node_tallies import NodeTallies
from temper_plugin_power.controller.stored_profiles import stored_profile
from temper_plugin_power.controller.tallies import Tallies
from temper_plugin_power.settings.operator import OperatorSettings
from temper_plugin_power.workloads.energy import Dialect
from tests.power.test_node_plans import a_pod, seen


def operator_page():
    """Return the page."""
    tallies = Tallies()
    for result in RESULTS:
        tallies.classified(result)
    tallies.asked("cpu_rate", 0.1, failed=False)
    tallies.asked("families", 5.0, failed=True)
    tallies.dialect_is(Dialect.OLD)
    tallies.add_leading(lambda: True)
    tallies.add_watches([WatchStatus("pods")])
    nodes = NodeTallies(tallies.registry)
    pods = [a_pod("a", "n1", reschedulable="false")]
    nodes.show(plan_nodes(seen(pods=pods), OperatorSettings()))
    nodes.changed("n1", "ActivePerformance", "DrainingPerformance", "deferred")
    nodes.evicted("n1", "shop", "evicted")
    nodes.evicted("n1", "shop", "dry_run")
    profile = {"status": {"confidence": 0.7, "evidence": {"energyBound": "unknown"}}}
    return tallies.page([stored_profile(profile)])
