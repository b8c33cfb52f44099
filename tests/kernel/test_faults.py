"""Every fault of tests/kernel/faults, by name: each ends in a safe state and leaves nothing."""

from collections.abc import Mapping
from concurrent.futures import Future

from tests.kernel.guest import Fault, Walked


def test_after_a_fault_the_node_is_safe(fault: Fault, background: Mapping[str, Future[Walked]]):
    group = background[fault.group].result()

    outcome = group.outcomes.get(fault.id)
    assert outcome is not None, f"was not played: {fault.claim}\n{group.output}"
    assert outcome.holds, f"not so: {fault.claim}\n{outcome.measured}\n\n{group.output}"
