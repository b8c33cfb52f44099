"""The shares of the parties of a time, with names."""

from collections import Counter
from collections.abc import Mapping, Sequence

from temper_plugin_tracer.trace.analysis.names import Names
from temper_plugin_tracer.trace.analysis.parties import PartyKind, kind_of
from temper_plugin_tracer.trace.analysis.report import Share, percentages

__all__ = ["shares_of"]

OTHERS = "(others)"


def shares_of(
    names: Names, parties: Mapping[int, int], level: str, subjects: Sequence[int], most: int
) -> tuple[Share, ...]:
    """Return the parties at *level*, largest first. Those beyond *most* are one of them.

    *parties* has nanoseconds by code, *subjects* the ids of the threads whose time it is.
    """
    sums: Counter[tuple[str, str]] = Counter()
    example: dict[tuple[str, str], int] = {}
    for code, ns in parties.items():
        name = names.party(code, level)
        if level != "thread" and name[1] != "engine" and kind_of(code) is PartyKind.THREAD:
            name = (name[0], "threads")
        sums[name] += ns
        example.setdefault(name, code)
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    shown, rest = ordered[:most], ordered[most:]
    if rest:
        shown.append(((OTHERS, "others"), sum(ns for _, ns in rest)))
    percents = percentages([ns for _, ns in shown])
    return tuple(
        Share(name, kind, ns, percent, _relation(names, subjects, example.get((name, kind))))
        for ((name, kind), ns), percent in zip(shown, percents, strict=True)
    )


def _relation(names: Names, subjects: Sequence[int], code: int | None) -> str:
    return "" if code is None else names.relation(subjects, code)
