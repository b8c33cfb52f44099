"""Made records of a node, for tests: pods, machines, threads, snapshots.

Public through ``temper_core.testing``.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.pods import Container, Pod
from temper_core.records.snapshots import LayerSample, Mode, Snapshot, Status, ThreadSample


def make_pod(name: str = "web", namespace: str = "default", **changes: Any) -> Pod:  # noqa: ANN401 - any field
    """Return a pod of one container. *changes* are fields of Pod."""
    containers = (Container("main", image="registry.example/web:1", processes=("web",)),)
    pod = Pod(uid=f"uid-{namespace}-{name}", namespace=namespace, name=name, containers=containers)
    return attrs.evolve(pod, **changes)


def make_machine(cores: int = 4, threads_per_core: int = 2, **shape: Any) -> MachineShape:  # noqa: ANN401 - any argument
    """Return a machine of equal cores. *shape* is as for ``MachineShape.uniform``."""
    return MachineShape.uniform(cores, threads_per_core, **shape)


def make_thread(comm: str = "worker", **changes: Any) -> ThreadSample:  # noqa: ANN401 - any field
    """Return a thread, an hour old, that used half of CPU 0 in the last window."""
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
    """Return an enforcing node's snapshot of a five-second window.

    *layers* are those of the plan, each with the CPUs it owns. *changes* are fields of Snapshot.
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
