"""Every number of ``/observe``, in each tier, against the kernel's files on a loaded machine."""

import os

import pytest

from temper_core.bpf.access import probe
from temper_core.observe.cgroup_roots import CgroupRoots
from temper_core.observe.document import observe_document
from temper_core.observe.observer import Observer
from temper_core.records.engine_matchers import Matcher
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.plans import Assignment, LayerPlan
from temper_core.records.pods import Pod
from temper_core.records.snapshots import Mode, Status
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings.models import ObserveSettings, Settings
from tests.core.observe.agreement.held import Window, hold
from tests.core.observe.agreement.load import PODS, Load
from tests.core.observe.agreement.looks import Looker

MACHINE = MachineShape.uniform(os.cpu_count())
WATCHING = Status(Mode.OBSERVE_ONLY)
ALL, FEW = 2_000, 16
STRANGERS = 200
"""Other people's threads, of whom there are many on the machines that tests run on."""
EXACT = 0.5
"""The share of what is compared that rests during both looks, at least: it has to agree exactly."""


@pytest.fixture
def folders(make_cgroup):
    """A cgroup for each pod, by its key."""
    return {f"shop/{name}": make_cgroup(name) for name in PODS}


@pytest.fixture
def load(folders):
    """Crews in those cgroups, and noise."""
    started = Load({key.removeprefix("shop/"): folder for key, folder in folders.items()})
    yield started
    started.end()


@pytest.fixture
def observe(folders, unified):
    """Make an observer of some tier, with the pods in its plan."""
    opened = []

    def make(tier, detail_threads):
        if tier != "proc" and not (access := probe()).is_allowed:
            pytest.skip(access.reason)
        settings = Settings(observe=ObserveSettings(tier=tier, detail_threads=detail_threads))
        opened.append(Observer(MACHINE, settings, node="", cgroup_roots=CgroupRoots(str(unified))))
        return lambda: opened[-1].tick(plan=plan_for(folders, unified), status=WATCHING)

    yield make
    for observer in opened:
        observer.close()


def plan_for(folders, unified):
    paths = {key: f"{folder.relative_to(unified)}/" for key, folder in folders.items()}
    layers = (
        Layer("low", LayerKind.OPEN, tuple((Matcher("CgroupPrefix", p),) for p in paths.values())),
        Layer("open", LayerKind.OPEN, ((),)),
    )
    pods = (Pod(key, *key.split("/"), cgroups=(path,)) for key, path in paths.items())
    return LayerPlan(MACHINE, layers, tuple(Assignment(pod, Tier.LOW, "") for pod in pods))


@pytest.mark.parametrize(
    ("tier", "detail_threads"),
    [("bpf", ALL), ("bpf", FEW), ("bpf-iter", ALL), ("proc", ALL)],
)
def test_every_number_agrees_with_the_kernels_files(
    observe, folders, load, unified, tier, detail_threads
):
    tick, looker = observe(tier, detail_threads), Looker(unified, folders)
    load.disturb()
    tick()
    load.work()
    before = looker.look()
    tick()
    begun = looker.look()
    load.work()
    ending = looker.look()
    snapshot = tick()
    after = looker.look()

    compared = hold(
        observe_document(snapshot, ALL), Window(before, begun, ending, after), STRANGERS
    )

    assert [str(each) for each in compared if not each.holds] == []
    exact = sum(each.is_exact for each in compared)
    assert len(compared) > 150
    assert exact > EXACT * len(compared), f"{exact} of {len(compared)}"
