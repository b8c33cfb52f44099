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
        """Return the number. Fail if it is NaN or out of range."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is not a number", param, ctx)
        return number
