"""The promise on the real kernel, for one plan; ``make judge-shapes`` takes all the others."""

from pathlib import Path

import pytest

from temper_core.plan.shapes import Row, Verdict
from tests.kernel.starvation.emitted import Tenant, plan_for
from tests.kernel.starvation.judge import MACHINES, Case, watch

CPUS = 4
SECONDS = 5.0


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Row:
    """Judge the plan with the hardest neighbour: a tier that preempts, and owns less than half."""
    tenants = tuple(Tenant(tier, 100, "") for tier in ("high", "normal"))
    case = Case(plan_for(MACHINES[CPUS], tenants, is_steered=True), SECONDS, only=("all",))
    share: Path = tmp_path_factory.mktemp("starvation")
    (judged,) = watch(share, [case], CPUS)
    return judged


def test_the_plan_loads(row: Row):
    assert row.loads, row.ended


def test_nobody_starves_while_every_layer_wants_every_cpu(row: Row):
    assert row.verdict is Verdict.GOOD, (row.worst_ms, row.ended)


def test_the_engine_stays_attached(row: Row):
    assert row.loads
    assert not row.ended
