"""A range of numbers for an option."""

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A range of numbers for an option. NaN is refused, since no bound excludes it."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number. Fail if it is none, NaN or out of range."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if math.isnan(number):
            self.fail(f"{value!r} is not a number{self._allowed()}", param, ctx)
        return float(super().convert(value, param, ctx))

    def _allowed(self) -> str:
        """Return the range in words, empty without bounds."""
        bounds = (
            ("above" if self.min_open else "at least", self.min),
            ("below" if self.max_open else "at most", self.max),
        )
        words = [f"{word} {bound:g}" for word, bound in bounds if bound is not None]
        return f"; allowed is {' and '.join(words)}" if words else ""
