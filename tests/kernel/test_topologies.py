"""The agent's plan on machines of several NUMA nodes and last-level caches, by the real engine.

Time is the guest's own (``vm/run --virtual-time``): with many busy CPUs the emulator gives each a
turn of a tenth of a second otherwise.
"""

from collections.abc import Callable

import pytest

from tests.kernel.guest import CHECKOUT, PYTHON, Walked, assert_held, walk_in_guest

TOPOLOGIES = CHECKOUT / "tests/kernel/topologies"
MACHINES = ((16, 2, 1), (16, 1, 4), (32, 2, 2))
"""CPUs, NUMA nodes, and last-level caches of each node."""
CLAIMS = {
    "shape": "sockets, nodes, caches, cores and CPUs are read as the guest was made",
    "doctor": "the node may enforce",
    "planned": "every layer owns the whole cores that the plan gives it, none twice",
    "planned_near": "no layer lies on more nodes than its size needs",
    "healthy": "the linter has nothing to tell of a healthy node",
    "alone": "the exclusive group has its core alone",
    "saturated": "with every tier saturated no layer outgrows the plan",
    "saturated_near": "and none lies on more nodes than its size needs",
    "saturated_system_served": "and the system layer is served within 100 ms",
    "saturated_served": "and no thread waits for a second",
    "saturated_attached": "and the engine stays attached",
}


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[tuple[int, int, int]], Walked]:
    known: dict[tuple[int, int, int], Walked] = {}

    def once(machine: tuple[int, int, int]) -> Walked:
        if machine not in known:
            cpus, nodes, caches = map(str, machine)
            share = tmp_path_factory.mktemp("topology")
            shape = ("--nodes", nodes, "--caches", caches)
            options = ("--virtual-time", "--cpus", cpus, *shape, "--timeout", "6000")
            program = (*PYTHON, TOPOLOGIES, *shape)
            known[machine] = walk_in_guest(share, options, program, TEMPER_VM_FILL=cpus)
        return known[machine]

    return once


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("machine", MACHINES, ids="{0[0]}-cpus-{0[1]}-nodes-{0[2]}-caches".format)
def test_on_a_machine_of_nodes_and_caches(
    claim: str, machine: tuple[int, int, int], walked: Callable[[tuple[int, int, int]], Walked]
):
    assert_held(claim, CLAIMS, walked(machine))
