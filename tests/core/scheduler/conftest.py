"""A fake node in a folder, a fake engine that really runs, and a clock that tests turn."""

import contextlib
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from temper_core.engine.installed import InstalledEngine
from temper_core.errors import BpfError
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import LayerPlan
from temper_core.records.tiers import LayerKind
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.scheduler.clocks import Clocks
from temper_core.scheduler.engine_process.access import EngineAccess
from temper_core.scheduler.hint_map import HintMap
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.lifecycle import Scheduler
from temper_core.scheduler.preflight import foreign_scheduler
from temper_core.settings import Settings
from tests.patience import PATIENCE_S

FAKE_ENGINE = Path(__file__).with_name("fake_engine.py")


class Node:
    """A folder that looks like a node on which the engine may run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.roots = Roots(
            **{
                root.name: folder / root.name for root in attrs.fields(Roots) if root.name != "kmsg"
            },
            kmsg=folder / "kmsg",
        )
        (folder / "state").hardlink_to(self.put("sys/kernel/sched_ext/state", "disabled\n"))
        self.put("sys/kernel/sched_ext/enable_seq", "7\n")
        self.put("sys/kernel/sched_ext/switch_all", "0\n")
        self.put("sys/kernel/sched_ext/nr_rejected", "0\n")
        self.put("sys/kernel/btf/vmlinux", "")
        self.put("sys/devices/system/cpu/possible", "0-3\n")
        self.put("sys/devices/system/cpu/online", "0-3\n")
        self.put("cgroup/cgroup.controllers", "cpu memory\n")
        self.put("cgroup/cgroup.stat", "nr_descendants 120\nnr_dying_descendants 3\n")
        self.put("proc/sys/fs/inotify/max_user_watches", "65536\n")
        self.put("proc/sys/kernel/osrelease", "6.18.15-test\n")
        self.put("proc/cmdline", "root=/dev/vda quiet\n")
        self.put("proc/self/status", "Name:\ttemper\nCapEff:\t000001ffffffffff\n")
        self.put("proc/self/cgroup", "0::/\n")
        self.put("proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 2000000 kB\n")
        self.put("proc/mounts", "proc /proc proc rw 0 0\n")
        self.put("boot/config-6.18.15-test", "CONFIG_SCHED_CLASS_EXT=y\n")
        self.put("kmsg", "")
        (folder / "scx").mkdir()

    def put(self, path: str, text: str) -> Path:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def remove(self, path: str) -> None:
        (self.folder / path).unlink()

    def attach(self, ops: str) -> None:
        """Attach somebody else's scheduler."""
        self.put("sys/kernel/sched_ext/root/ops", f"{ops}\n")
        self.put("sys/kernel/sched_ext/state", "enabled\n")

    def detach(self) -> None:
        self.remove("sys/kernel/sched_ext/root/ops")
        self.put("sys/kernel/sched_ext/state", "disabled\n")

    @property
    def state(self) -> str:
        return (self.roots.sched_ext / "state").read_text().strip()


def plan_of(
    *names: str, slice_us: int = 20_000, weight: int = 100, steered: bool = False
) -> LayerPlan:
    """Make up a plan of layers with these names; the engine is not told of the weight."""
    layers = tuple(
        Layer(name, LayerKind.OPEN, ((),), slice_us=slice_us, weight=weight) for name in names
    )
    hints = {name: 16 + index for index, name in enumerate(names)} if steered else {}
    return LayerPlan(MachineShape.uniform(4), layers, hints=hints)


def render(plan: LayerPlan) -> str:
    layers = [{"name": one.name, "slice_us": one.slice_us} for one in plan.layers]
    return json.dumps([*layers, {"name": "unmatched"}] if plan.is_steered else layers)


class World:
    """One node, one fake engine, any number of schedulers on a clock that only tests turn."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.now = 1000.0
        self.checked: list[str] = []
        self.refusals: list[Exception] = []
        self.requests = SafeModeRequests(node.folder / "safe-mode", node.folder / "requests.json")
        self.started = node.folder / "started.json"
        self.trigger = node.folder / "trigger"
        self.detach = node.folder / "detach"
        self.garble = node.folder / "garble"
        self.hold = node.folder / "hold"
        self.binary = node.put(
            "scx_layered",
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S {FAKE_ENGINE} "$@"\n',
        )
        self.binary.chmod(0o755)
        self.schedulers: list[Scheduler] = []
        self.script()

    def script(self, **script: Any) -> None:
        """Say how engines behave that are started from now on."""
        files = {
            "started": str(self.started),
            "trigger": str(self.trigger),
            "detach": str(self.detach),
            "garble": str(self.garble),
            "hold": str(self.hold),
        }
        beside = self.node.put("script.new", json.dumps({**files, **script}))
        beside.replace(self.node.folder / "script.json")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "FAKE_SCRIPT": str(self.node.folder / "script.json"),
            "FAKE_KERNEL": str(self.node.roots.sched_ext),
            "FAKE_STATE": str(self.node.folder / "state"),
            "FAKE_STATS": str(self.node.roots.stats_socket),
        }

    def settings(self, **scheduler: Any) -> Settings:
        chosen = {"engine": str(self.binary), "quiet_s": 2.0, "min_interval_s": 30.0, **scheduler}
        return Settings(scheduler=attrs.evolve(Settings().scheduler, **chosen))

    def scheduler(self, hint_map: HintMap | None = None, **settings: Any) -> Scheduler:
        def check(config: str, _version: str, _cpus: int) -> None:
            self.checked.append(config)
            if self.refusals:
                raise self.refusals.pop(0)

        made = Scheduler(
            self.settings(**settings),
            self.requests,
            roots=self.node.roots,
            access=EngineAccess(
                render=render,
                find=lambda name: InstalledEngine(Path(name), "1.1.4"),
                check=check,
                environment=self.environment,
            ),
            clocks=Clocks(wall=lambda: self.now, chance=lambda: 0.5),
            hint_map=hint_map,
        )
        self.schedulers.append(made)
        return made

    def drive(self, scheduler: Scheduler, until: Callable[[], Any]) -> None:
        """Step at one moment of the fake clock until *until* holds, while processes really run."""
        limit = time.monotonic() + PATIENCE_S
        while not until():
            assert time.monotonic() < limit, f"still {scheduler.status} {scheduler.diagnosis}"
            assert scheduler.step(self.now) >= 0
            time.sleep(0.003)

    def settle(self, scheduler: Scheduler, mode: str, reason: str = "", **facts: Any) -> None:
        """Drive until the status reads so."""

        def reads_so() -> bool:
            status = scheduler.status
            told = (status.mode, status.reason) == (mode, reason)
            return told and all(getattr(status, name) == fact for name, fact in facts.items())

        self.drive(scheduler, reads_so)

    def idle(self, scheduler: Scheduler) -> None:
        """Drive until no engine is left."""
        self.drive(scheduler, lambda: scheduler.engine_pid is None)

    def enforce(self, plan: LayerPlan, **settings: Any) -> Scheduler:
        """Make a scheduler, and have it enforce *plan* as generation 1."""
        scheduler = self.scheduler(**settings)
        scheduler.submit(plan)
        self.settle(scheduler, "enforcing", generation=1)
        return scheduler

    def change(self, scheduler: Scheduler, plan: LayerPlan) -> None:
        """Want *plan*, and let the quiet period and the spacing of reloads pass."""
        scheduler.submit(plan)
        scheduler.step(self.now)
        self.now += 31.0
        scheduler.step(self.now)

    def engine(self) -> dict[str, Any]:
        """What the engine that was started last saw of itself."""
        found: dict[str, Any] = json.loads(self.started.read_text())
        return found


@pytest.fixture(autouse=True)
def unknown_maps(monkeypatch) -> None:
    """Let checks of a made-up node know nothing of this machine's BPF maps."""

    def refuse():
        raise BpfError("a made-up node has no maps")

    monkeypatch.setattr(foreign_scheduler, "struct_ops_ids", refuse)


@pytest.fixture
def node(tmp_path) -> Node:
    return Node(tmp_path)


@pytest.fixture
def world(node) -> Iterator[World]:
    made = World(node)
    yield made
    made.script()
    for scheduler in made.schedulers:
        for pid in scheduler.engine_pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        scheduler.close()


@pytest.fixture
def plan() -> Callable[..., LayerPlan]:
    return plan_of
