"""The options of the commands that choose how advice follows from demand."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from attrs import fields

from temper_core.console import FiniteRange
from temper_plugin_rightsizer.advice.options import AdviceOptions

Function = TypeVar("Function", bound=Callable[..., Any])


def advice_options(function: Function) -> Function:
    """Add an option for each field of ``AdviceOptions``. Without one its value is None."""
    for choice in reversed(fields(AdviceOptions)):
        facts = choice.metadata
        option = click.option(
            f"--{choice.name.replace('_', '-')}",
            type=FiniteRange(facts["least"], facts["most"]),
            help=f"{facts['summary']} [default: {choice.default:g}]",
        )
        function = option(function)
    return function


def chosen(values: Mapping[str, float | None]) -> dict[str, float]:
    """Return those of the options' *values* that were given."""
    return {name: value for name, value in values.items() if value is not None}
