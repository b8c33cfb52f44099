"""The loop that decides about nodes and writes their NodeTwins."""

import threading
import time
from collections.abc import Callable

import structlog
from attrs import define, field

from temper_core import MachineError
from temper_kube.failures import ForbiddenError, NotFoundError, RefusalError
from temper_plugin_power.controller.kube_events import Events, Subject
from temper_plugin_power.controller.node_plans import NodePlan, Plans, Situations, plan_nodes
from temper_plugin_power.controller.twin_writing import TwinWriter
from temper_plugin_power.operating.guard import State
from temper_plugin_power.settings.operator import OperatorSettings

DEADLINE_S = 20.0
"""Of the writes of one cycle. The next one begins with the nodes that were left."""
APPLIED, DEFERRED = "applied", "deferred"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define
class NodeLoop:
    """Decides about all nodes, and writes one after the other. One that fails stops no other.

    *see* returns the cluster as it is. *changed* is called with the node, the states before and
    after, and whether the change is applied or deferred. *advised* is called with the plans after
    the nodes are written.
    """

    see: Callable[[], Situations]
    writer: TwinWriter
    settings: OperatorSettings
    events: Events
    shown: Callable[[Plans], object]
    changed: Callable[[str, str, str, str], object]
    advised: Callable[[Plans], object] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    _plans: tuple[float, Plans] | None = field(default=None, init=False)
    _states: dict[str, State] = field(factory=dict, init=False)
    _first: int = field(default=0, init=False)
    _warned_of: set[str] = field(factory=set, init=False)

    def run(self, closing: threading.Event, may_write: Callable[[], bool], every_s: float) -> None:
        """Work until *closing* is set."""
        while not closing.wait(min(every_s, 1.0) if not may_write() else every_s):
            if may_write():
                self.cycle()

    def current(self, within_s: float) -> Plans:
        """Return the last plans, none if they are older than *within_s*."""
        if self._plans is None or self.clock() - self._plans[0] > within_s:
            return Plans()
        return self._plans[1]

    def cycle(self) -> None:
        """Decide once, and write within the deadline."""
        seen = self.see()
        plans = plan_nodes(seen, self.settings)
        self._warn_of_missing_caps(plans)
        self.shown(plans)
        self._plans = self.clock(), plans
        self._write(plans, seen)
        self.advised(plans)

    def _warn_of_missing_caps(self, plans: Plans) -> None:
        """Log once each percentage that leaves nodes without a cap, with one such node."""
        for plan in plans.nodes:
            if plan.without_cap and plan.without_cap not in self._warned_of:
                self._warned_of.add(plan.without_cap)
                name = f"[plugins.power.operator.caps] {plan.without_cap}"
                log.warning("node_without_cap", node=plan.node.name, setting=name, value_pct=0.0)

    def _write(self, plans: Plans, seen: Situations) -> None:
        until = time.monotonic() + DEADLINE_S
        nodes = plans.nodes
        begin = self._first % len(nodes) if nodes else 0
        self._first = 0
        for place, plan in enumerate((*nodes[begin:], *nodes[:begin])):
            if time.monotonic() >= until:
                self._first = begin + place
                log.warning("nodes_left", nodes=len(nodes) - place, limit_s=DEADLINE_S)
                return
            try:
                self.writer.write(plan, seen.twins.get(plan.node.name))
            except (ForbiddenError, NotFoundError, RefusalError) as error:
                log.warning("node_not_written", node=plan.node.name, reason=str(error)[:300])
            except MachineError as error:
                log.warning("nodes_not_written", reason=str(error)[:300])
                return
            else:
                self._note(plan)

    def _note(self, plan: NodePlan) -> None:
        """Log a node whose state is another one."""
        name, state = plan.node.name, plan.transition.state
        before = self._states.get(name)
        self._states[name] = state
        if before in (None, state):
            return
        result = DEFERRED if plan.transition.is_draining else APPLIED
        self.changed(name, str(before), str(state), result)
        why = ", ".join(f"{count} {cause}" for cause, count in plan.blocking.items())
        waits = f", waits for {why}" if why and plan.transition.is_draining else ""
        subject = Subject("v1", "Node", name, uid=plan.node.uid)
        self.events.tell(subject, "PowerState", f"{before} to {state}{waits}")
