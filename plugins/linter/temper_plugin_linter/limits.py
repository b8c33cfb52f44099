"""When a promise counts as broken in one window: the table ``[plugins.linter]``."""

from collections.abc import Iterator
from typing import Any

import attrs
from attrs import field, frozen
from attrs.validators import and_, ge, gt, le

SHARE = and_(gt(0.0), le(1.0))


def limit(default: float, means: str, validator: Any) -> Any:  # noqa: ANN401 - attrs' own way
    """Declare one threshold: its default, what it means with its unit, and what is allowed."""
    return field(default=default, metadata={"help": means}, validator=validator)


@frozen
class Limits:
    """The thresholds. ``docs/linter.md`` lists them with what they mean."""

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
        "Share of the threads that belong in a layer, one at least, that the engine may not count "
        "there: they may just have ended.",
        and_(ge(0.0), le(1.0)),
    )
    settle_windows: int = limit(
        2, "Windows that a new thread, or a new engine's plan, has to settle.", ge(0)
    )
    quota_ratio: float = limit(
        1.05, "How much of its quota a pod may use before that counts as beyond it.", ge(1.0)
    )
    contended_cpu: float = limit(
        0.25, "Threads of a pod that wait for a CPU, on average, for it to count as short.", gt(0.0)
    )
    weight_shortfall: float = limit(
        0.25, "Share of what its weight entitles a pod to that it may go without.", SHARE
    )
    rt_cpu: float = limit(
        0.5, "CPUs from which on a real-time thread counts as a hog.", and_(gt(0.0), le(1.0))
    )
    antagonist_ratio: float = limit(
        0.1, "Share of its time that a protected thread may wait for a CPU behind others.", SHARE
    )
    starved_s: float = limit(
        1.0, "Seconds that a runnable thread may wait at a time for a CPU.", gt(0.0)
    )


def meanings() -> Iterator[tuple[str, float, str]]:
    """Yield every threshold: its name, its default, and what it means."""
    defaults = Limits()
    for each in attrs.fields(Limits):
        yield each.name, getattr(defaults, each.name), each.metadata["help"]
