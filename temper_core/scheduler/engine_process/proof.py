"""The proof that an engine is attached. Temper reports ``enforcing`` only after it.

"Attached" in the engine's log is no proof: the kernel may refuse a moment later. ``enable_seq`` is
raised a moment after ``state`` reads enabled, so the proof is repeated until it is complete.
"""

import json
from collections.abc import Set as AbstractSet

from attrs import frozen

from temper_core.scheduler.host.kernel import OUR_OPS, KernelState, KernelStateWord


@frozen
class Proof:
    """The conditions for "attached" that do not hold yet, each as a short clause."""

    missing: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether everything holds."""
        return not self.missing

    def __str__(self) -> str:
        return "; ".join(self.missing) or "attached"


def prove(
    kernel: KernelState,
    *,
    enable_seq_before: int | None,
    is_alive: bool,
    layers_wanted: AbstractSet[str],
    layers_seen: AbstractSet[str] | None,
) -> Proof:
    """Check one reading of the kernel, the process and its statistics."""
    clauses = [
        (kernel.word is KernelStateWord.ENABLED, f"sched_ext is {kernel.word}"),
        (kernel.ops.startswith(OUR_OPS), f"the kernel runs {kernel.ops or 'no scheduler'}"),
        (kernel.switch_all == 1, f"switch_all is {kernel.switch_all}, not 1"),
        (_was_raised(kernel.enable_seq, enable_seq_before), _seq_clause(kernel, enable_seq_before)),
        (is_alive, "the engine's process has ended"),
        (layers_seen is not None, "no statistics have arrived"),
        (layers_seen in (None, layers_wanted), _layer_clause(layers_wanted, layers_seen)),
    ]
    return Proof(tuple(clause for holds, clause in clauses if not holds))


def layer_names(config: str) -> frozenset[str]:
    """Return the names of the layers in a configuration. The plan alone may lack some of them."""
    return frozenset(layer["name"] for layer in json.loads(config))


def _was_raised(seq: int | None, before: int | None) -> bool:
    return seq is not None and seq > (before or 0)


def _seq_clause(kernel: KernelState, before: int | None) -> str:
    return f"enable_seq is {kernel.enable_seq}, {before} before the start"


def _layer_clause(planned: AbstractSet[str], reported: AbstractSet[str] | None) -> str:
    differing = sorted(planned ^ (reported or set()))
    return f"the statistics name other layers than the plan: {', '.join(differing)}"
