"""The node's power in the agent: its section, metrics, checks and events, and the caps."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from temper_core import (
    Check,
    EventKind,
    EventLevel,
    InstrumentContext,
    Metric,
    OpenInstrument,
    Snapshot,
)
from temper_plugin_power.node.actions import Action
from temper_plugin_power.node.checks import gpu_caps_check, power_checks, twin_check
from temper_plugin_power.node.control import LET_GO, OFF, STOPPED, Control
from temper_plugin_power.node.control_status import NO_PACKAGES, Device, control_status
from temper_plugin_power.node.families import NodePower, node_metrics
from temper_plugin_power.node.gpu_worker import GpuWorker
from temper_plugin_power.node.gpus import GpuReader
from temper_plugin_power.node.readings import PackageReader
from temper_plugin_power.node.section import power_section
from temper_plugin_power.node.tier_shares import tier_watts
from temper_plugin_power.node.zones import Powercap, find_packages
from temper_plugin_power.settings.durations import seconds
from temper_plugin_power.settings.node import NodeSettings

if TYPE_CHECKING:
    from temper_plugin_power.node.cluster_twin import ClusterTwin

KINDS = (
    EventKind("power_cap_applied", "A power limit was set; the subject is the package or GPU."),
    EventKind(
        "power_cap_restored", "A power limit was given back; the subject is the package or GPU."
    ),
    EventKind(
        "power_cap_blocked",
        "A power limit cannot be set here; the subject is the package or GPU.",
        level=EventLevel.WARNING,
    ),
    EventKind(
        "power_cap_error",
        "A power limit was not set or given back; the subject is the package or GPU.",
        level=EventLevel.WARNING,
    ),
)


class PowerNode(OpenInstrument):
    """Reads the power of the node at each look, and sets its limits if the settings ask for it."""

    def __init__(
        self,
        settings: NodeSettings,
        context: InstrumentContext,
        powercap: Powercap,
        gpus: GpuReader,
        clock: Callable[[], float] = time.monotonic,
        twin: "ClusterTwin | None" = None,
    ) -> None:
        self._settings = settings
        self._twin = twin
        self._context = context
        self._powercap = powercap
        self._reader = PackageReader(powercap.packages)
        self._gpus = gpus
        self._clock = clock
        self._gpu_caps = GpuWorker(context.state) if settings.actuate else None
        self._control = Control(
            *(settings, context, powercap.packages),
            found=None if twin is None else twin.found,
            why_no_gpus=self._why_no_gpus,
        )
        if self._gpu_caps is not None:
            self._gpu_caps.start()
        self._next_turn_s = 0.0
        self._actions: Counter[str] = Counter()
        self._seen = NodePower()

    @classmethod
    def of(
        cls,
        settings: NodeSettings,
        context: InstrumentContext,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Find what can be read on this machine."""
        gpus = GpuReader(seconds(settings.interval))
        powercap = find_packages(Path(settings.powercap_path))
        twin = _cluster_twin(settings, context.node) if settings.twin_from_cluster else None
        return cls(settings, context, powercap, gpus, clock, twin)

    def section(self, snapshot: Snapshot) -> Mapping[str, Any]:
        """Read the power of the window, and return it."""
        self._read(snapshot)
        return power_section(
            self._seen,
            self._powercap,
            self._gpus.problem,
            self._control,
            message=self._control.message or self._disk_problem(),
            actuates=self._settings.actuate,
        )

    def tell(self, snapshot: Snapshot) -> None:
        """Set or lift the limits, once in an interval."""
        if snapshot.monotonic_s >= self._next_turn_s:
            self._next_turn_s = snapshot.monotonic_s + seconds(self._settings.interval)
            self._record(self._control.turn(time.time(), snapshot))
            if self._gpu_caps is not None:
                control = self._control
                self._record(self._gpu_caps.ask(control.spec, control.message))
            self._report()

    def let_go(self) -> None:
        """Lift the limits for good: nothing follows the specification any more."""
        self._record(self._control.let_go())
        if self._gpu_caps is not None:
            self._record(self._gpu_caps.let_go(LET_GO))
        self._report()

    def metrics(self) -> Iterable[Metric]:
        """Return the readings of the last window."""
        return node_metrics(self._context.node, self._seen, self._actions)

    def checks(self) -> Iterable[Check]:
        """Return whether power can be read here, and capped."""
        caps_gpus = bool(self._disk_problem()) or not self._why_no_gpus()
        yield from power_checks(
            *(self._powercap, self._settings, self._gpus.problem, self._control.message),
            caps_gpus=caps_gpus,
        )
        if self._gpu_caps is not None:
            yield gpu_caps_check(
                self._gpu_caps.problem,
                disk_problem=self._disk_problem(),
                has_let_go=self._control.has_let_go,
            )
        if self._twin is not None:
            yield twin_check(self._twin.problem)

    def events(self) -> Iterable[EventKind]:
        """Declare the events of caps."""
        return KINDS

    def defects(self) -> Iterable[str]:
        """Return why counters cannot be read."""
        return self._seen.power.problems

    def close(self) -> None:
        """Give back every limit. Those of GPUs do not wait for the record of the packages."""
        self._gpus.close()
        if self._gpu_caps is not None:
            self._record(self._gpu_caps.let_go(STOPPED))
        self._record(self._control.close())
        if self._gpu_caps is not None:
            self._record(self._gpu_caps.close(STOPPED))
        if self._twin is not None:
            self._report(STOPPED)
            self._twin.close()

    def _why_no_gpus(self) -> str:
        if self._gpu_caps is None:
            return OFF
        return "" if self._gpu_caps.is_here else self._gpu_caps.problem

    def _disk_problem(self) -> str:
        return "" if self._gpu_caps is None else self._gpu_caps.disk_problem

    def _report(self, why_none: str = "") -> None:
        """Let the cluster know what was done with the caps, or why none is set."""
        if self._twin is not None:
            capping, gpus = self._control.capping, self._gpu_caps
            why_no_cpu = "" if self._powercap.packages else NO_PACKAGES
            cpu = Device("rapl", why_no_cpu, capping.caps_watts, capping.last)
            gpu = Device("host-nvidia", OFF)
            if gpus is not None:
                gpu = Device("host-nvidia", gpus.problem, gpus.caps_watts, gpus.last)
            why_none = why_none or self._control.message
            self._twin.report(control_status(self._control, why_none, cpu, gpu))

    def _read(self, snapshot: Snapshot) -> None:
        now_s = self._clock()
        power = self._reader.read(now_s)
        self._gpus.turn(now_s)
        watts = power.package_watts
        tiers = {} if watts is None else tier_watts(watts, snapshot)
        self._seen = NodePower(power, tiers, self._gpus.gpus, self._backends())

    def _backends(self) -> tuple[str, ...]:
        here = {"rapl": bool(self._powercap.packages), "host-nvidia": bool(self._gpus.gpus)}
        return tuple(name for name, is_here in here.items() if is_here) or ("none",)

    def _record(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self._actions[action.kind] += 1
            self._context.record(f"power_cap_{action.kind}", action.package, action.detail)


def _cluster_twin(settings: NodeSettings, node: str) -> "ClusterTwin":
    # Its client of the API server costs memory that most agents do not need.
    from temper_plugin_power.node.cluster_twin import ClusterTwin  # noqa: PLC0415 - see above

    return ClusterTwin.of(settings, node)
