"""Attached means proven: each clause on its own."""

import attrs
import pytest

from temper_core.scheduler.engine_process.proof import prove
from temper_core.scheduler.host.kernel import KernelState, KernelStateWord

ATTACHED = KernelState(KernelStateWord.ENABLED, "layered_1.1.4", switch_all=1, enable_seq=8)
FACTS = {
    "enable_seq_before": 7,
    "is_alive": True,
    "layers_wanted": frozenset({"a", "b"}),
    "layers_seen": frozenset({"b", "a"}),
}


def test_everything_together_is_a_proof():
    proof = prove(ATTACHED, **FACTS)

    assert proof.is_complete
    assert str(proof) == "attached"


@pytest.mark.parametrize(
    ("kernel", "clause"),
    [
        ({"word": KernelStateWord.ENABLING}, "sched_ext is enabling"),
        ({"ops": "lavd_1.0"}, "the kernel runs lavd_1.0"),
        ({"ops": ""}, "the kernel runs no scheduler"),
        ({"switch_all": 0}, "switch_all is 0, not 1"),
        ({"enable_seq": 7}, "enable_seq is 7, 7 before the start"),
        ({"enable_seq": None}, "enable_seq is None, 7 before the start"),
    ],
)
def test_what_the_kernel_lacks_is_named(kernel, clause):
    assert prove(attrs.evolve(ATTACHED, **kernel), **FACTS).missing == (clause,)


@pytest.mark.parametrize(
    ("facts", "clause"),
    [
        ({"is_alive": False}, "the engine's process has ended"),
        ({"layers_seen": None}, "no statistics have arrived"),
        (
            {"layers_seen": frozenset({"a", "c"})},
            "the statistics name other layers than the plan: b, c",
        ),
    ],
)
def test_what_the_process_lacks_is_named(facts, clause):
    assert prove(ATTACHED, **{**FACTS, **facts}).missing == (clause,)


def test_a_kernel_that_never_enabled_anything_starts_from_nothing():
    assert prove(ATTACHED, **{**FACTS, "enable_seq_before": None}).is_complete
