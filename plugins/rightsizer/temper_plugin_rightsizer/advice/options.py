"""The choices that advice depends on."""

from collections.abc import Callable
from typing import Any

from attrs import Attribute, field, frozen
from attrs.validators import and_, ge, instance_of, le

_NUMBER = instance_of((int, float))


def _between(least: float, most: float) -> Callable[[Any, "Attribute[float]", float], Any]:
    return and_(_NUMBER, ge(least), le(most))


@frozen
class AdviceOptions:
    """Choices of the rule.

    Attributes:
        percentile: The share of the time (0..1) in which the request covers the demand.
        margin: What a shared demand is multiplied by.
        hot: CPUs. A thread is hot if its use reaches this in the top ``1 - percentile`` of the
            time.
        throttle_target: The share of periods (0..0.1) that may be throttled.
        memory_margin: What the peak of memory is multiplied by.
        keep_within: The relative distance to the current value that is not worth a change.

    """

    percentile: float = field(default=0.95, validator=_between(0.5, 1.0))
    margin: float = field(default=1.25, validator=_between(1.0, 4.0))
    hot: float = field(default=0.8, validator=_between(0.25, 1.0))
    throttle_target: float = field(default=0.01, validator=_between(0.0, 0.1))
    memory_margin: float = field(default=1.2, validator=_between(1.0, 4.0))
    keep_within: float = field(default=0.1, validator=_between(0.0, 1.0))


USUAL = AdviceOptions()
