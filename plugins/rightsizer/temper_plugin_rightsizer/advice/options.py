"""The choices that advice depends on."""

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

from attrs import Attribute, field, fields, frozen
from attrs.validators import and_, ge, instance_of, le

from temper_core import InputError

LONGEST_NUMBER = 20


def _choice(default: float, least: float, most: float, summary: str) -> Any:  # noqa: ANN401 - attrs
    validator = and_(instance_of((int, float)), ge(least), le(most))
    return field(
        default=default,
        validator=validator,
        metadata={"summary": summary, "least": least, "most": most},
    )


@frozen
class AdviceOptions:
    """Choices of the rule. The metadata of each has what it is, and its bounds."""

    percentile: float = _choice(
        0.95, 0.5, 1.0, "The share of the time in which the request covers the demand."
    )
    margin: float = _choice(1.25, 1.0, 4.0, "What a demand that shares cores is multiplied by.")
    hot: float = _choice(0.8, 0.25, 1.0, "CPUs. A thread is hot if its percentile reaches this.")
    throttle_target: float = _choice(
        0.01, 0.0, 0.1, "The share of the quota's periods that may be throttled."
    )
    memory_margin: float = _choice(1.2, 1.0, 4.0, "What the peak of memory is multiplied by.")
    keep_within: float = _choice(
        0.1, 0.0, 1.0, "The relative distance to the current value that is not worth a change."
    )

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Self:
        """Return the choices that *texts* name. Raise InputError for a value out of bounds."""
        return cls(
            **{
                choice.name: _number(choice, texts[choice.name])
                for choice in fields(cls)
                if choice.name in texts
            }
        )


def _number(choice: "Attribute[float]", text: str) -> float:
    least, most = choice.metadata["least"], choice.metadata["most"]
    with suppress(ValueError):
        number = float(text) if len(text) <= LONGEST_NUMBER else math.nan
        if least <= number <= most:
            return number
    shown = text[:LONGEST_NUMBER]
    raise InputError(f"{choice.name} must be a number from {least:g} to {most:g}, not {shown!r}")


USUAL = AdviceOptions()
