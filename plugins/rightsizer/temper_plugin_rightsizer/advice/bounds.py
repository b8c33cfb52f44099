"""Several bounds on one container as one."""

from collections.abc import Callable, Iterable

from temper_plugin_rightsizer.advice.surroundings import Bounds, Range


def joined(first: Bounds, second: Bounds) -> Bounds:
    """Return the bounds of which both hold."""
    return Bounds(_joined(first.cpu, second.cpu), _joined(first.memory, second.memory))


def _joined(first: Range, second: Range) -> Range:
    return Range(_one(max, first.least, second.least), _one(min, first.most, second.most))


def _one(choose: Callable[[Iterable[int]], int], *amounts: int | None) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return choose(known) if known else None
