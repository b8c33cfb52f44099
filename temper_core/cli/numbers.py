"""Numbers that options take."""

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A range of numbers that NaN is not in, which is neither below nor above anything."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own way
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number; fail where it is none, or out of range."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value} is no number", param, ctx)
        return number
