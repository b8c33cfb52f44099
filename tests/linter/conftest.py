import pytest

from temper_core import Cpu, Layer, LayerKind, MachineShape, Tier
from temper_core.testing import make_snapshot

CRITICAL = Layer("critical", LayerKind.CONFINED, ((),), tier=Tier.CRITICAL, protected=True)
HIGH = Layer("high", LayerKind.GROUPED, ((),), tier=Tier.HIGH, protected=True)
SYSTEM = Layer("system", LayerKind.GROUPED, ((),), preempt=True)
OPEN = Layer("open", LayerKind.OPEN, ((),))


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
