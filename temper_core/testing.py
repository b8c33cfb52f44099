"""What a plugin's own tests need: a host with that plugin alone, its contract, and samples.

A suite uses it by ``pytest_plugins = ["temper_core.testing"]`` in its ``conftest.py``.
"""

import json
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from temper_core.errors import InputError
from temper_core.plugin_host import RECORDS, Contribution, PluginHost
from temper_core.records.contributions import Command, Detector, Endpoint, Exporter, Request
from temper_core.records.invariants import Invariant
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.pods import Container, Pod
from temper_core.records.snapshots import LayerSample, Mode, Snapshot, Status, ThreadSample
from temper_core.settings.models import PluginHostSettings, Settings

HOOKS = RECORDS


@pytest.fixture
def host() -> PluginHost:
    """Return a host with no plugin, whatever is installed."""
    return PluginHost()


def assert_keeps_contract(
    plugin: object, name: str = "under-test", settings: Mapping[str, Any] | None = None
) -> None:
    """Fail unless *plugin* fits the hooks and keeps what it promises.

    Every hook is asked twice and must name the same records; then what it contributed is called
    with samples: detectors, invariants, exporters, commands, and endpoints that only read.
    """
    given = {name: dict(settings or {})}
    host = PluginHost(Settings(plugins=given, plugin_host=PluginHostSettings(strict=True)))
    host.add(plugin, name)
    for hook, kind in HOOKS.items():
        contributions = host.gather(hook, kind)
        again = host.gather(hook, kind)
        named = [contribution.record.name for contribution in contributions]
        assert named == [c.record.name for c in again], f"{hook} is not the same twice"  # noqa: S101 - a test kit asserts
        for contribution in contributions:
            _exercise(host, contribution)


def make_pod(name: str = "web", namespace: str = "default", **changes: Any) -> Pod:  # noqa: ANN401 - any field
    """Return a pod of one container; *changes* are fields of Pod."""
    containers = (Container("main", image="registry.example/web:1", processes=("web",)),)
    pod = Pod(uid=f"uid-{namespace}-{name}", namespace=namespace, name=name, containers=containers)
    return attrs.evolve(pod, **changes)


def make_machine(cores: int = 4, threads_per_core: int = 2, **shape: Any) -> MachineShape:  # noqa: ANN401 - any argument
    """Return a machine of equal cores; *shape* as for ``MachineShape.uniform``."""
    return MachineShape.uniform(cores, threads_per_core, **shape)


def make_thread(comm: str = "worker", **changes: Any) -> ThreadSample:  # noqa: ANN401 - any field
    """Return a thread that used half of CPU 0 in the last window, and is old enough to judge."""
    thread = ThreadSample(
        tid=1000,
        tgid=1000,
        comm=comm,
        process=comm,
        start_ticks=1,
        cpu=0,
        cpu_used=0.5,
        run_delay_ratio=0.0,
        age_s=3600.0,
    )
    return attrs.evolve(thread, **changes)


def make_snapshot(
    *threads: ThreadSample,
    machine: MachineShape | None = None,
    layers: Mapping[Layer, tuple[int, ...]] | None = None,
    **changes: Any,  # noqa: ANN401 - any field
) -> Snapshot:
    """Return what an enforcing node saw in five seconds.

    *layers* are those of the plan, each with the CPUs it owns; *changes* are fields of Snapshot.
    """
    machine = machine or make_machine()
    owned = layers or {}
    snapshot = Snapshot(
        at=1_750_000_000.0,
        monotonic_s=3600.0,
        window_s=5.0,
        node="node-1",
        machine=machine,
        status=Status(Mode.ENFORCING, generation=1, engine="scx_layered 1.1.4"),
        threads=threads,
        layers=tuple(_sample(layer, cpus, threads) for layer, cpus in owned.items()),
        plan=LayerPlan(machine, tuple(owned)),
    )
    return attrs.evolve(snapshot, **changes)


def _sample(layer: Layer, cpus: tuple[int, ...], threads: tuple[ThreadSample, ...]) -> LayerSample:
    members = [thread for thread in threads if thread.layer == layer.name]
    used = sum(thread.cpu_used for thread in members)
    return LayerSample(
        name=layer.name,
        kind=layer.kind,
        cpus=cpus,
        cpus_used=used,
        util=used / len(cpus) if cpus else None,
        tasks=len(members),
        tier=layer.tier,
    )


def _exercise(host: PluginHost, contribution: Contribution[Any]) -> None:
    plugin, record = contribution.plugin, contribution.record
    match record:
        case Detector():
            host.call(plugin, record.detect, make_pod())
        case Invariant():
            host.call(plugin, record.check, make_snapshot(make_thread()))
        case Exporter():
            host.call(plugin, record.collect, make_snapshot(make_thread()))
        case Command():
            loaded = host.call(plugin, record.load)
            assert loaded.name == record.name, f"command {record.name} calls itself {loaded.name}"  # noqa: S101 - the same
        case Endpoint(acts=False, method="GET"):
            host.call(plugin, _answer_in_json, record)


def _answer_in_json(endpoint: Endpoint) -> None:
    for snapshot in (None, make_snapshot(make_thread())):
        try:
            json.dumps(endpoint.answer(Request({}, None, snapshot)))
        except InputError:
            continue  # it may ask for parameters
