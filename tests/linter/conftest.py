import attrs
import pytest

from temper_core import (
    Assignment,
    Cpu,
    Layer,
    LayerKind,
    MachineShape,
    Pod,
    PodSample,
    Tier,
)
from temper_core.testing import make_snapshot
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.placement_tracker import PlacementTracker

CRITICAL = Layer(
    "critical", LayerKind.CONFINED, ((),), tier=Tier.CRITICAL, protected=True, members=("shop/db",)
)
HIGH = Layer(
    "high", LayerKind.GROUPED, ((),), tier=Tier.HIGH, protected=True, members=("shop/api",)
)
SYSTEM = Layer("system", LayerKind.GROUPED, ((),), preempt=True)
OPEN = Layer("open", LayerKind.OPEN, ((),), members=("shop/web", "shop/batch", "shop/cron"))


@pytest.fixture
def two_cores():
    """Two cores whose siblings are 0 and 2, 1 and 3, as cloud machines number them."""
    return MachineShape("x86_64", tuple(Cpu(id=n, core=n % 2) for n in range(4)))


@pytest.fixture
def seen():
    """Return the snapshot of four cores, of which critical owns the first and system the last."""

    def make(*threads, **changes):
        layers = {CRITICAL: (0, 1), HIGH: (2, 3), SYSTEM: (6, 7), OPEN: ()}
        return make_snapshot(*threads, **{"layers": layers, **changes})

    return make


@pytest.fixture
def judge():
    """Judge the last of some snapshots, with what is remembered of those before it."""

    def ask(check, *snapshots, **limits):
        tracker = PlacementTracker(Limits(**limits))
        return [list(check(tracker.look(snapshot))) for snapshot in snapshots][-1]

    return ask


@pytest.fixture
def next_window():
    """Return the same snapshot one window later, but for what is given."""

    def make(snapshot, **changes):
        later = snapshot.monotonic_s + snapshot.window_s
        return attrs.evolve(snapshot, monotonic_s=later, **changes)

    return make


@pytest.fixture
def sample():
    """Return the sample of a pod that used half a CPU."""

    def make(name="web", **changes):
        pod = PodSample("shop", name, f"uid-{name}", Tier.NORMAL, threads=4, cpu_used=0.5)
        return attrs.evolve(pod, **changes)

    return make


@pytest.fixture
def profiled():
    """Return a snapshot's plan with a pod of it that has a profile."""

    def make(snapshot, loaded, name="web", **pod):
        meant = Pod(f"uid-{name}", "shop", name, **pod)
        assignment = Assignment(meant, Tier.NORMAL, "test", profile=loaded)
        return attrs.evolve(snapshot.plan, assignments=(assignment,))

    return make
