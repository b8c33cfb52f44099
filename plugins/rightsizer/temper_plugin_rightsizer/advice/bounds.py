"""Several bounds on one container as one."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from temper_plugin_rightsizer.advice.surroundings import Bounds, Range

Amount = TypeVar("Amount", int, float)


def joined(first: Bounds, second: Bounds) -> Bounds:
    """Return the bounds of which both hold."""
    return Bounds(_joined(first.cpu, second.cpu), _joined(first.memory, second.memory))


def _joined(first: Range, second: Range) -> Range:
    return Range(
        _one(max, first.least, second.least),
        _one(min, first.most, second.most),
        _one(min, first.ratio, second.ratio),
    )


def _one(choose: Callable[[Iterable[Amount]], Amount], *amounts: Amount | None) -> Amount | None:
    known = [amount for amount in amounts if amount is not None]
    return choose(known) if known else None
