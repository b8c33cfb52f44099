"""An agent that only looks like one: everything the server sees of it is a plain attribute."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from temper_core.errors import InputError, PluginError
from temper_core.events.event_log import EventLog
from temper_core.metrics.source import AgentCounters
from temper_core.metrics.totals import Sums
from temper_core.observe.document import observe_document
from temper_core.plan.render import plan_document
from temper_core.plugin_host.shared_time import SharedTime
from temper_core.profiles.reloads import Reloaded
from temper_core.profiles.trials import TrialBook
from temper_core.records.checks import Check
from temper_core.records.contributions import Exporter
from temper_core.records.endpoints import Endpoint, Requester
from temper_core.records.histogram import Histogram
from temper_core.records.invariants import Invariant
from temper_core.records.layers import Layer
from temper_core.records.lint import Severity, Violation
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, Generation, LayerPlan
from temper_core.records.pods import Pod
from temper_core.records.profiles import ProfileFailure
from temper_core.records.snapshots import (
    LayerSample,
    Mode,
    Overhead,
    PluginState,
    PodSample,
    Pressure,
    PressureLine,
    Snapshot,
    Status,
    ThreadSample,
)
from temper_core.records.tiers import LayerKind, Tier
from tests.patience import PATIENCE_S

MACHINE = MachineShape.uniform(4)
PLAN = LayerPlan(
    MACHINE,
    (Layer("critical", LayerKind.CONFINED, (), tier=Tier.CRITICAL, cpus_min=1, cpus_max=2),),
    (
        Assignment(Pod("1", "shop", "web", cpu_request_millis=1500), Tier.CRITICAL, "priority"),
        Assignment(Pod("2", "shop", "batch", cpu_request_millis=250), Tier.LOW, "priority"),
    ),
)


def pressure(avg10: float) -> Pressure:
    return Pressure(PressureLine(avg10, avg10 / 2, avg10 / 4, 1000))


def a_snapshot(**changes: Any) -> Snapshot:
    given: dict[str, Any] = {
        "at": time.time(),
        "monotonic_s": time.monotonic(),
        "window_s": 5.0,
        "node": "node-a",
        "machine": MACHINE,
        "status": Status(Mode.ENFORCING, generation=7, engine="scx_layered 1.1.4"),
        "threads": (
            ThreadSample(
                41,
                40,
                "ib_worker",
                "mysqld",
                1,
                2,
                0.75,
                0.1,
                namespace="shop",
                pod="web",
                layer="critical",
            ),
        ),
        "pods": (
            PodSample("shop", "web", "1", Tier.CRITICAL, 12, 1.2, pressure={"cpu": pressure(0.02)}),
            PodSample("shop", "batch", "2", Tier.LOW, 3, 0.4, pressure={"cpu": pressure(0.5)}),
        ),
        "layers": (
            LayerSample("critical", LayerKind.CONFINED, (0, 1), 1.23, 0.61, 12, demoted=False),
            LayerSample("open", LayerKind.OPEN, (), 0.5, None, 90, demoted=True),
        ),
        "pressure": {"cpu": pressure(0.25)},
        "overhead": Overhead({"user": 0.002, "kernel": 0.001}, 50_000_000, threads_seen=321),
        "plan": PLAN,
        "violations": (
            Violation("smt_collision", Severity.WARNING, "shop/web", "shared", "move", {}, 0.0),
        ),
        "invariants": ("smt_collision", "layer_mismatch"),
    }
    return Snapshot(**given | changes)


@define(slots=False)
class FakeView:
    """Implements AgentView; a plugin named ``hung`` waits for ``release`` before it fails.

    ``explain`` waits for ``slow``, if that is given.
    """

    last: Snapshot | None = field(factory=a_snapshot)
    in_force: Generation | None = Generation(7, PLAN, '[{"name": "critical"}]')
    state: Status = Status(Mode.ENFORCING, generation=7)
    counted: AgentCounters = AgentCounters(
        reloads={"pods": 3},
        ejections={"stall": 1},
        swaps={"warm": 2},
        swap_failures={"config": 1},
        stock_seconds={"warm": Histogram().with_value(0.052)},
    )
    found: tuple[PluginState, ...] = (
        PluginState("linter", "0.1.0", "temper-plugin-linter", ("temper_invariants",), "active"),
    )
    exported: list[tuple[str, Exporter]] = field(factory=list)
    taken: list[tuple[str, str, str]] = field(factory=list)
    served: list[tuple[str, Endpoint]] = field(factory=list)
    alive: bool = True
    failing: Mapping[str, str] = field(factory=dict)
    pods_age: float = 0.0
    no_swap: str = ""
    summed: Sums = Sums()
    series: int = 0
    slow: threading.Event | None = None
    happened: EventLog = field(factory=EventLog)
    requests: dict[str, dict[str, Any]] = field(factory=dict)
    unkept: str = ""
    failed: list[tuple[str, str]] = field(factory=list)
    checked: list[tuple[str, Check]] = field(factory=list)
    promised: list[tuple[str, Invariant]] = field(factory=list)
    audited: list[tuple[str, str, str]] = field(factory=list)
    audited_series: list[bool] = field(factory=list)
    ended: list[tuple[str, str, str, bool]] = field(factory=list)
    lost: dict[tuple[str, str], str] = field(factory=dict)
    release: threading.Event = field(factory=threading.Event)
    reloads: int = 0
    book: TrialBook = field(factory=lambda: TrialBook(lambda: {"shop/web", "shop/batch"}, MACHINE))

    def reload_profiles(self) -> Reloaded:
        self.reloads += 1
        return Reloaded(3, changed=True, failures=(ProfileFailure("a.toml", "a", "broken"),))

    def trials(self) -> TrialBook:
        return self.book

    def snapshot(self) -> Snapshot | None:
        return self.last

    def generation(self) -> Generation | None:
        return self.in_force

    def plan_document(self) -> Any | None:
        if self.in_force is None:
            return None
        told = plan_document(self.in_force.plan, self.in_force.number)
        return {**told, "can_swap": not self.no_swap, "why_no_swap": self.no_swap}

    def status(self) -> Status:
        return self.state

    def observe_document(self, top: int | None = None) -> Any | None:
        return observe_document(self.last, top or 50) if self.last else None

    def recording_document(self) -> Any | None:
        return None

    def explain(self, pod: str | None) -> Any:
        if self.slow is not None:
            self.slow.wait(PATIENCE_S)
        known = {"shop/web": "critical", "shop/batch": "low"}
        if pod is None:
            return {"pods": known}
        if pod not in known:
            raise InputError(f"no pod {pod!r} on this node")
        return {"pod": pod, "tier": known[pod]}

    def safe_mode_requests(self) -> dict[str, dict[str, Any]]:
        return dict(self.requests)

    def unkept_requests(self) -> str:
        return self.unkept

    def request_safe_mode(self, requester: str, reason: str) -> None:
        self.requests[requester] = {"reason": reason, "since": 1.0}

    def release_safe_mode(self, requester: str) -> bool:
        return self.requests.pop(requester, None) is not None

    def counters(self) -> AgentCounters:
        return self.counted

    def plugins(self) -> tuple[PluginState, ...]:
        return self.found

    def invariants(self) -> list[tuple[str, Invariant]]:
        return self.promised

    def checks(self) -> list[tuple[str, Check]]:
        return self.checked

    def audit(
        self, request_line: str, requester: Requester, outcome: str, *, is_series: bool = False
    ) -> None:
        self.audited.append((request_line, str(requester), outcome))
        self.audited_series.append(is_series)

    def note_end(self, plugin: str, part: str, failure: str = "", *, is_hung: bool = False) -> None:
        self.ended.append((plugin, part, failure, is_hung))

    def why_lost(self, plugin: str, part: str) -> str:
        return self.lost.get((plugin, part), "")

    def call(
        self,
        plugin: str,
        function: Callable[..., Any],
        *arguments: Any,
        part: str,
        is_clients: bool = False,  # noqa: ARG002 - as the host has it
    ) -> Any:
        if plugin == "hung":
            self.release.wait(PATIENCE_S)
            raise PluginError(plugin, "did not answer in time")
        try:
            return function(*arguments)
        except Exception as error:
            self.failed.append((plugin, part))
            raise PluginError(plugin, f"{type(error).__name__}: {error}") from error

    def time_of_a_scrape(self) -> SharedTime:
        return SharedTime(self, PATIENCE_S, "all exporters have in a scrape")

    def exporters(self) -> list[tuple[str, Exporter]]:
        return self.exported

    def events(self) -> EventLog:
        return self.happened

    def endpoints(self) -> list[tuple[str, Endpoint]]:
        return self.served

    def note_series(self, count: int) -> None:
        self.series = count

    def note_taken(self, plugin: str, metric: str, owner: str) -> None:
        self.taken.append((plugin, metric, owner))

    def sums(self) -> Sums:
        return self.summed

    def failures(self) -> Mapping[str, str]:
        return self.failing

    def is_alive(self) -> bool:
        return self.alive

    def pods_age_s(self) -> float:
        return self.pods_age
