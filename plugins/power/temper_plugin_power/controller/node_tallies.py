"""The operator's metrics about nodes."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from temper_core import MetricFamily
from temper_plugin_power.controller.node_plans import NodePlan, Plans
from temper_plugin_power.controller.rescheduling import EVICTED, REASON
from temper_plugin_power.families import operator as families


class NodeTallies:
    """Metrics of the last decision about nodes, in the operator's registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(family: MetricFamily) -> Gauge:
            return Gauge(family.name, family.help, family.labels, registry=registry)

        def counter(family: MetricFamily) -> Counter:
            return Counter(family.name, family.help, family.labels, registry=registry)

        self._transitions = counter(families.TRANSITIONS)
        self._evictions = counter(families.EVICTIONS)
        self._skips = counter(families.SKIPS)
        self._state = gauge(families.NODE_STATE)
        self._profile = gauge(families.NODE_PROFILE)
        self._blocking = gauge(families.BLOCKING)
        self._count = gauge(families.HP_NODES)
        self._demand = gauge(families.DEMAND)
        self._density = gauge(families.DENSITY)
        self._headroom = gauge(families.HEADROOM)
        self._cooling = gauge(families.COOLING)
        self._supply = gauge(families.SUPPLY)

    def show(self, plans: Plans) -> None:
        """Show the last decision, and nothing of nodes that are gone."""
        for family in (self._state, self._profile, self._blocking, self._density):
            family.clear()
        for family in (self._headroom, self._cooling, self._supply):
            family.clear()
        self._count.set(plans.performance_nodes)
        self._demand.set(float(plans.demand))
        for plan in plans.nodes:
            self._show_node(plan)

    def changed(self, node: str, before: str, after: str, result: str) -> None:
        """Count a change of the state of a node."""
        self._transitions.labels(node, before, after, result).inc()

    def evicted(self, node: str, namespace: str, outcome: str) -> None:
        """Count an eviction, or why it was left out."""
        if outcome == EVICTED:
            self._evictions.labels(node, namespace, REASON).inc()
        else:
            self._skips.labels(node, outcome).inc()

    def _show_node(self, plan: NodePlan) -> None:
        name, twin = plan.node.name, plan.twin
        self._state.labels(name, str(plan.transition.state)).set(1)
        self._profile.labels(name, plan.transition.in_force).set(1)
        for cause, count in plan.blocking.items():
            self._blocking.labels(name, str(cause)).set(count)
        self._density.labels(name, "all").set(plan.density)
        self._headroom.labels(name).set(twin.headroom)
        self._cooling.labels(name).set(twin.cooling_stress)
        self._supply.labels(name).set(twin.psu_stress)
