"""The operator at work: its threads, from ``start`` to ``close``."""

import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime

import structlog
from attrs import define, field

from temper_kube.access import Access
from temper_kube.api_server import ApiServer
from temper_plugin_power.classifier.hints import PREFIX
from temper_plugin_power.controller.advice_writing import AdviceWriter
from temper_plugin_power.controller.chosen import asking, facility_asking, profiling_choices
from temper_plugin_power.controller.classifier import Classifier, Cluster, Timing
from temper_plugin_power.controller.collecting import Collector
from temper_plugin_power.controller.energy_matching import EnergyMatching
from temper_plugin_power.controller.hardware_writing import HardwareWriter
from temper_plugin_power.controller.kube_events import Events
from temper_plugin_power.controller.last_facility import LastFacility
from temper_plugin_power.controller.leading import Leader, LeaseName, NotLeadingError
from temper_plugin_power.controller.measurer import Measurer
from temper_plugin_power.controller.node_loop import NodeLoop
from temper_plugin_power.controller.node_plans import Plans, Situations
from temper_plugin_power.controller.node_tallies import NodeTallies
from temper_plugin_power.controller.pod_table import PodTable
from temper_plugin_power.controller.profile_writing import ProfileWriter
from temper_plugin_power.controller.rescheduling import Rescheduler
from temper_plugin_power.controller.tallies import Tallies
from temper_plugin_power.controller.twin_writing import TwinWriter
from temper_plugin_power.controller.watching import Scope, Watches
from temper_plugin_power.measuring.measuring import Measured
from temper_plugin_power.operating.facility import Facility
from temper_plugin_power.settings.durations import seconds
from temper_plugin_power.settings.power import PowerSettings
from temper_plugin_power.workloads.owners import Workload

LEASE = "temper-power-operator"
WAIT_S = 0.5
"""How soon a thread sees that the operator closes, or leads."""
CLOSE_S = 5.0
ONLY_READING = ("power-measure", "power-facility")
"""The threads that write nothing to the API server."""
AGAIN_S = 5.0
"""After this time a part that has failed begins anew."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define
class Operator:
    """Writes WorkloadProfiles while it leads."""

    settings: PowerSettings
    access: Access
    tallies: Tallies = field(factory=Tallies)
    watches: Watches = field(init=False)
    leader: Leader = field(init=False)
    classifier: Classifier = field(init=False)
    _measurer: Measurer[Measured] = field(init=False)
    _facility: LastFacility = field(init=False)
    _asking_facility: Measurer[Facility] = field(init=False)
    _collector: Collector = field(init=False)
    _nodes: NodeLoop = field(init=False)
    _rescheduler: Rescheduler = field(init=False)
    _energy: EnergyMatching = field(factory=EnergyMatching, init=False)
    _closing: threading.Event = field(factory=threading.Event, init=False)
    _connections: ExitStack = field(factory=ExitStack, init=False)
    _threads: list[threading.Thread] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        settings, holder = self.settings, f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
        labels = settings.operator.caps.gpu_product_labels
        scope = Scope(settings.node_selector, (PREFIX, *settings.annotation_aliases), labels)
        self.watches = Watches(scope, PodTable(self._note))
        cluster = Cluster(self.watches.pods, self.watches.profiles, self.watches.node_names)
        self.leader = Leader(self._connection(), LeaseName(self.access.namespace, LEASE, holder))
        server = self._writing_connection()
        writer = ProfileWriter(server, _now, self.watches.profiles.put, Events(server, holder))
        of = settings.classifier
        timing = Timing(seconds(of.reclassify_interval), int(seconds(of.metrics_window)))
        choices = profiling_choices(settings, self.access.namespace)
        self.classifier = Classifier(cluster, writer, choices, timing, self.tallies.classified)
        ask = asking(of, self.tallies) if of.prometheus_url else None
        self._measurer = Measurer(ask, self._begin_cycle, self._is_due, seconds(of.interval))
        poll_s = seconds(settings.operator.facility.poll)
        self._facility = LastFacility(poll_s)
        ask_facility = facility_asking(settings, self.tallies)
        self._asking_facility = Measurer(
            ask_facility, self._facility.told, lambda: self.leader.is_leading, poll_s
        )
        self._collector = Collector(cluster, self._writing_connection())
        self._nodes, self._rescheduler = self._of_nodes(holder)
        self.tallies.add_leading(lambda: self.leader.is_leading)
        self.tallies.add_watches(self.watches.statuses.values())

    @property
    def why_unready(self) -> str:
        """The kinds of objects that are not known yet, empty if all are."""
        missing = [
            name for name, status in self.watches.statuses.items() if not status.has_listed.is_set()
        ]
        return f"not listed yet: {', '.join(missing)}" if missing else ""

    def page(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        return self.tallies.page(self.watches.profiles.records())

    def start(self) -> None:
        """Begin. Returns at once."""
        self.watches.start(self.access)
        for name, run in (
            ("lease", lambda: self.leader.run(self._closing)),
            ("classify", self._classify),
            ("measure", lambda: self._measurer.run(self._closing)),
            ("facility", lambda: self._asking_facility.run(self._closing)),
            ("collect", self._collect),
            ("nodes", self._decide_nodes),
            ("reschedule", self._reschedule),
        ):
            arguments = (name, run)
            thread = threading.Thread(
                target=self._keep, args=arguments, name=f"power-{name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        """End all threads, and give the Lease back. One that still writes keeps it until it ends.

        Another replica then waits until the Lease expires.
        """
        self._closing.set()
        self.watches.close()
        until = time.monotonic() + CLOSE_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        writing = (thread for thread in self._threads if thread.name not in ONLY_READING)
        if not any(thread.is_alive() for thread in writing):
            self.leader.release()
        self._connections.close()

    def _keep(self, name: str, run: Callable[[], None]) -> None:
        """Run a part until the operator closes. One input that it fails on does not end it."""
        while not self._closing.is_set():
            try:
                run()
            except Exception as error:
                log.exception("part_failed", part=name, again_in_s=AGAIN_S, reason=str(error)[:300])
                self._closing.wait(AGAIN_S)
            else:
                return

    def _note(self, workload: Workload) -> None:
        self.classifier.note(workload)

    @property
    def may_write(self) -> bool:
        """Whether this replica leads, and everything is known that it needs."""
        return self.leader.is_leading and self.watches.have_listed

    def _classify(self) -> None:
        is_new = True
        while not self._closing.is_set():
            if not self.may_write:
                is_new = True
                self._closing.wait(WAIT_S)
                continue
            if is_new:
                is_new = False
                self.classifier.note_all()
            self._closing.wait(self.classifier.step(WAIT_S))

    def _collect(self) -> None:
        interval_s = seconds(self.settings.classifier.interval)
        while not self._closing.wait(interval_s):
            if self.may_write and self.watches.statuses["pods"].is_up:
                self._collector.collect()

    def _decide_nodes(self) -> None:
        every_s = seconds(self.settings.operator.interval)
        self._nodes.run(self._closing, lambda: self.may_write, every_s)

    def _reschedule(self) -> None:
        within_s = 2 * seconds(self.settings.operator.interval)
        self._rescheduler.run(
            self._closing, lambda: self._nodes.current(within_s), lambda: self.may_write
        )

    def _of_nodes(self, holder: str) -> tuple[NodeLoop, Rescheduler]:
        of, tallies = self.settings.operator, NodeTallies(self.tallies.registry)
        server, evicting = self._writing_connection(), self._writing_connection()
        writer = TwinWriter(server, _now, self.watches.twins.put, writes_labels=not of.dry_run)
        events = Events(server, holder)
        profiles = self.watches.profiles
        advice = AdviceWriter(server, profiles.put)
        hardware = HardwareWriter(server, _now, self.watches.hardware.put, of.caps.gpu_models)

        def tell(plans: Plans) -> None:
            hardware.write(
                (plan.node for plan in plans.nodes), dict(self.watches.hardware.records())
            )
            advice.write(plans.nodes, profiles.records())

        loop = NodeLoop(
            *(self._see, writer, of, events, tallies.show, tallies.changed), advised=tell
        )
        moving = Rescheduler(evicting, of.rescheduler, Events(evicting, holder), tallies.evicted)
        return loop, moving

    def _see(self) -> Situations:
        """Return the cluster as it is known. Pods are not known while a watch is down."""
        watches, names = self.watches, self.watches.node_names()
        pods = [pod for pod in watches.pods.all() if not pod.node or pod.node in names]
        return Situations(
            nodes=[node for node in watches.nodes.records() if node.is_eligible],
            twins={twin.name: twin for twin in watches.twins.records()},
            records=dict(watches.hardware.records()),
            pods=pods if watches.are_current("pods", "profiles") else None,
            profiles={
                each.workload: each.profile for each in watches.profiles.records() if each.status
            },
            min_confidence=self.settings.min_confidence,
            now_s=int(time.time()),
            facility=self._facility.current(),
        )

    def _begin_cycle(self, measured: Measured | None) -> None:
        if measured is not None:
            self.tallies.dialect_is(measured.dialect)
            pods = {pod.measured.pod.key for pod in self.watches.pods.all()}
            self._energy.look(measured, pods)
        self.classifier.measured(measured)

    def _is_due(self) -> bool:
        return self.may_write and self.classifier.needs_metrics()

    def _connection(self) -> ApiServer:
        return self._connections.enter_context(ApiServer(self.access))

    def _writing_connection(self) -> ApiServer:
        """Return a connection whose every write asks first whether this replica leads."""
        return self._connections.enter_context(ApiServer(self.access, permit=self._permit))

    def _permit(self) -> float:
        if self._closing.is_set():
            raise NotLeadingError("not written: this replica ends")
        return self.leader.permit()


def _now() -> datetime:
    return datetime.now(UTC)
