"""The contract of a plugin, tried on samples: ``temper_core.testing.assert_keeps_contract``."""

# ruff: noqa: S101 - a test kit asserts

import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from attrs import frozen

from temper_core.errors import InputError, MachineError
from temper_core.events.event_log import EventLog
from temper_core.instruments.charges import InstrumentCharges
from temper_core.instruments.context import AgentParts
from temper_core.instruments.helper_calls import HelperCalls
from temper_core.instruments.instruments import Instruments
from temper_core.instruments.lookup import PlanLookup
from temper_core.instruments.state_directory import InstrumentDirectory
from temper_core.made_records import make_machine, make_pod, make_snapshot, make_thread
from temper_core.made_trees import make_hierarchy, write_files
from temper_core.metrics.declarations import Declarations
from temper_core.node.pod_watch import PodWatch
from temper_core.plugin_host import RECORDS, Contribution, PluginHost
from temper_core.plugin_host.answers import read_metrics
from temper_core.profiles.trials import TrialBook
from temper_core.records.contributions import (
    Command,
    Detector,
    Exporter,
    PodSource,
    PodSourceContext,
)
from temper_core.records.declarations import MetricFamily
from temper_core.records.endpoints import Endpoint, Request
from temper_core.records.executions import Execution, ExecutionNews
from temper_core.records.instruments import Instrument
from temper_core.records.invariants import Invariant
from temper_core.records.restored import Restored
from temper_core.records.snapshots import PodSample, Snapshot
from temper_core.records.tiers import Tier
from temper_core.server.answers import respond
from temper_core.settings.models import PluginHostSettings, Settings

PATH_PARAMETER = re.compile(r"{(\w+)(?::path)?}")
WINDOWS = 2
"""Looks at a pod source."""


def assert_keeps_contract(
    plugin: object, name: str = "under-test", settings: Mapping[str, Any] | None = None
) -> None:
    """Fail unless *plugin* fits the hooks and its records work on samples.

    Every hook is called twice and must name the same records. Then detectors, invariants,
    exporters, commands, and endpoints that only read are called with samples. Instruments and pod
    sources are opened, asked for two windows, and closed. One that cannot be opened here, by a
    MachineError or InputError, is left out with a warning.
    """
    tables = {name: dict(settings or {})}
    host = PluginHost(Settings(plugins=tables, plugin_host=PluginHostSettings(strict=True)))
    host.add(plugin, name)
    families = host.gather("temper_metrics", MetricFamily)
    declared = [(contribution.plugin, contribution.record) for contribution in families]
    with tempfile.TemporaryDirectory(prefix="temper-contract-") as folder:
        tried = _Trying(host, name, Declarations(declared), Path(folder))
        for hook, kind in RECORDS.items():
            contributions = host.gather(hook, kind)
            again = host.gather(hook, kind)
            names = [contribution.record.name for contribution in contributions]
            assert names == [c.record.name for c in again], f"{hook} differs between two calls"
            for contribution in contributions:
                tried.record(contribution)


@frozen
class _Trying:
    """Calls the records of the plugin *name* in the host, as the agent does."""

    host: PluginHost
    name: str
    declarations: Declarations
    folder: Path

    def record(self, contribution: Contribution[Any]) -> None:
        """Call what *contribution* holds."""
        match record := contribution.record:
            case Detector():
                self._call(record.detect, make_pod())
            case Invariant():
                self._call(record.check, make_snapshot(make_thread()))
            case Exporter():
                self._metrics(record)
            case Command():
                loaded = self._call(record.load)
                assert loaded.name == record.name, f"{record.name} has the name {loaded.name}"
            case Endpoint():
                self._endpoint(record)
            case Instrument():
                self._instrument(contribution)
            case PodSource():
                self._pod_source(record)

    def _call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the function's own
        return self.host.call(self.name, function, *arguments, **options)

    def _metrics(self, exporter: Exporter) -> None:
        held = self.declarations.held(self.name, exporter)
        self._call(lambda: read_metrics(held.collect(make_snapshot(make_thread())), self.name))
        assert not self.declarations.defects, "; ".join(self.declarations.defects)

    def _endpoint(self, endpoint: Endpoint) -> None:
        if not endpoint.acts and endpoint.method == "GET":
            self._call(_answer_so_that_it_can_be_sent, endpoint, self.name)

    def _instrument(self, contribution: Contribution[Instrument]) -> None:
        name = contribution.record.name
        instruments = Instruments(self.host, [contribution], _parts(self.folder))
        instruments.open()
        try:
            if name not in instruments.names:
                self._not_opened(f"instrument {name}", *instruments.defects)
                return
            self._no_failure()
            assert not instruments.defects, "; ".join(instruments.defects)
            for snapshot in _snapshots():
                self._window(instruments, snapshot)
            for _, endpoint in instruments.endpoints():
                self._endpoint(endpoint)
            instruments.checks()
            instruments.let_go()
        finally:
            instruments.close()
        self._no_failure()

    def _window(self, instruments: Instruments, snapshot: Snapshot) -> None:
        """Call an instrument as the agent does for one window, and as a scrape does after it."""
        told = instruments.with_sections(snapshot)
        too_large = [each for each in told.defects if "its section is larger" in each]
        assert not too_large, too_large[0]
        instruments.tell(told)
        for _, exporter in instruments.exporters():
            self._metrics(exporter)
        self._no_failure()

    def _pod_source(self, record: PodSource) -> None:
        context = PodSourceContext(
            options=self.host.settings.pods,
            workloads=(),
            machine=make_machine(),
            proc_root=str(write_files(self.folder / "proc", {"mounts": ""})),
            cgroup_root=str(make_hierarchy(self.folder / "cgroup")),
            node="node-1",
        )
        try:
            source = self._call(record.open, context, allows=(InputError, MachineError))
        except (InputError, MachineError) as error:
            self._not_opened(f"pod source {record.name}", str(error))
            return
        watch = PodWatch(self.host, self.name, source)
        try:
            for _ in range(WINDOWS):
                watch.look()
                watch.executed(ExecutionNews((Execution(2, 1),), is_heard=True))
                self._no_failure()
            uids = [pod.uid for pod in watch.pods]
            assert len(uids) == len({*uids}), f"two pods of {record.name} have one uid: {uids}"
        finally:
            watch.close()
        self._no_failure()

    def _not_opened(self, what: str, *reasons: str) -> None:
        self._no_failure()
        warnings.warn(f"{what} was not tried: {'; '.join(reasons)}", stacklevel=5)

    def _no_failure(self) -> None:
        """Fail if a call failed. The host counts what it keeps from the agent."""
        [state] = self.host.states()
        assert not self.host.failures[self.name], f"plugin {self.name} {state.failure}"


class _NoSafeMode:
    """Takes requests for safe mode, and does nothing."""

    def is_requested(self) -> bool:
        """Return False."""
        return False

    def request(self, name: str, reason: str) -> None:
        """Take a request."""

    def reason(self, name: str) -> str:  # noqa: ARG002 - of the protocol
        """Return no reason."""
        return ""

    def release(self, name: str) -> None:
        """Take a withdrawal."""

    def restore(self, name: str, reason: str, done: Callable[[Restored], None]) -> None:
        """Take a request to restore."""


def _parts(folder: Path) -> AgentParts:
    return AgentParts(
        node="node-1",
        machine=make_machine(),
        lookup=PlanLookup(lambda: None),
        safe_mode=_NoSafeMode(),
        helpers=HelperCalls(),
        trials=TrialBook(),
        recorder=EventLog(),
        state=partial(InstrumentDirectory, folder / "state"),
        charge=InstrumentCharges(lambda _line: nullcontext()),
    )


def _snapshots() -> list[Snapshot]:
    """Return a snapshot for each window: without a pod, and with one."""
    pod = PodSample("default", "web", "uid-default-web", Tier.NORMAL, threads=1, cpu_used=0.5)
    return [
        make_snapshot(make_thread()),
        make_snapshot(make_thread(), at=1_750_000_005.0, monotonic_s=3605.0, pods=(pod,)),
    ]


def _answer_so_that_it_can_be_sent(endpoint: Endpoint, plugin: str) -> None:
    for snapshot in (None, make_snapshot(make_thread())):
        # Every request has the parameters of the path.
        query = dict.fromkeys(PATH_PARAMETER.findall(endpoint.path), "unknown")
        path = PATH_PARAMETER.sub("unknown", endpoint.path)
        request = Request(query, snapshot, path=path)
        try:
            reply = respond(endpoint, request, plugin)  # a refused request is answered, too
        except MachineError:
            continue  # it may require what this machine lacks
        getattr(reply.pieces, "close", lambda: None)()
