"""Thresholds of the invariants in one window: the table ``[plugins.linter]``."""

from collections.abc import Iterator
from typing import Any

import attrs
from attrs import field, frozen
from attrs.validators import and_, ge, gt, le

SHARE = and_(gt(0.0), le(1.0))


def limit(default: float, means: str, validator: Any) -> Any:  # noqa: ANN401 - attrs' own way
    """Declare one threshold: its default, its meaning with its unit, and its allowed range."""
    return field(default=default, metadata={"help": means}, validator=validator)


@frozen
class Limits:
    """The thresholds. ``docs/linter.md`` lists them with their meanings."""

    hot_cpu: float = limit(0.5, "CPUs from which on a thread counts as hot.", SHARE)
    noisy_cpu: float = limit(
        0.5, "CPUs of others' work from which on an SMT sibling counts as noisy.", SHARE
    )
    stray_ratio: float = limit(
        0.05, "Share of a layer's CPU use, or of its scheduling events, that may stray.", SHARE
    )
    idle_cpu: float = limit(
        0.05, "CPUs below which a thread, pod or layer uses too little to be judged.", ge(0.0)
    )
    missing_ratio: float = limit(
        0.1,
        "Share of a layer's threads, at least one, that may be missing from the engine's count: "
        "they may just have ended.",
        and_(ge(0.0), le(1.0)),
    )
    settle_windows: int = limit(
        2, "Windows during which a new thread or a new engine's plan is not judged.", ge(0)
    )
    quota_ratio: float = limit(1.05, "Multiple of its quota that a pod may use.", ge(1.0))
    contended_cpu: float = limit(
        0.25, "Average number of waiting threads from which on a pod is short of CPU.", gt(0.0)
    )
    weight_shortfall: float = limit(
        0.25, "Share of the CPU that its weight entitles a pod to that it may lack.", SHARE
    )
    rt_cpu: float = limit(
        0.5, "CPUs from which on a real-time thread counts as a hog.", and_(gt(0.0), le(1.0))
    )
    antagonist_ratio: float = limit(
        0.1, "Share of its time that a protected thread may wait behind other pods.", SHARE
    )
    starved_s: float = limit(
        1.0, "Seconds that a runnable thread may wait at a time for a CPU.", gt(0.0)
    )


def meanings() -> Iterator[tuple[str, float, str]]:
    """Yield the name, the default and the meaning of every threshold."""
    defaults = Limits()
    for threshold in attrs.fields(Limits):
        yield threshold.name, getattr(defaults, threshold.name), threshold.metadata["help"]
