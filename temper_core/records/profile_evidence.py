"""The measurements that support a profile, and the effect that they show."""

import datetime as dt
import math
from collections.abc import Iterator
from enum import StrEnum

from attrs import field, frozen
from attrs.validators import (
    and_,
    deep_iterable,
    ge,
    instance_of,
    le,
    max_len,
    min_len,
    optional,
)

from temper_core.records.key_metadata import key_help

LONGEST_TEXT = 500
LONGEST_MEASURE = 60
LONGEST_UNIT = 20
LARGEST_FIGURE = 1e12
MOST_FIGURES = 32

_IS_TEXT = and_(instance_of(str), max_len(LONGEST_TEXT))
_IS_FIGURE = and_(ge(0.0), le(LARGEST_FIGURE))
_FIGURE_SCHEMA = {"minimum": 0, "maximum": LARGEST_FIGURE}


class Effect(StrEnum):
    """The effect of a profile, compared with the pod's tier without a profile."""

    BETTER = "better"
    WITHIN_SPREAD = "within the spread"
    WORSE = "worse"
    NOT_MEASURED = "not measured"


class Direction(StrEnum):
    """Whether higher or lower values of a figure are better."""

    LOWER = "lower"
    HIGHER = "higher"


@frozen
class Figure:
    """One measure in each arm of a comparison. All values have the same ``unit``.

    ``spread`` is the largest difference between runs of one arm. A smaller difference between two
    arms means nothing.
    """

    measure: str = field(
        validator=and_(instance_of(str), min_len(1), max_len(LONGEST_MEASURE)),
        metadata=key_help(
            "What was measured, such as p99 latency.", minLength=1, maxLength=LONGEST_MEASURE
        ),
    )
    tiers_only: float = field(
        validator=_IS_FIGURE,
        metadata=key_help("Value with the pod's tier and without the profile.", **_FIGURE_SCHEMA),
    )
    profile: float = field(
        validator=_IS_FIGURE, metadata=key_help("Value with the profile.", **_FIGURE_SCHEMA)
    )
    spread: float = field(
        validator=_IS_FIGURE,
        metadata=key_help("Largest difference between runs of one arm.", **_FIGURE_SCHEMA),
    )
    stock: float | None = field(
        default=None,
        validator=optional(_IS_FIGURE),
        metadata=key_help("Value with the kernel's stock scheduler.", **_FIGURE_SCHEMA),
    )
    unit: str = field(
        default="",
        validator=and_(instance_of(str), max_len(LONGEST_UNIT)),
        metadata=key_help("Unit of the values, such as ms.", maxLength=LONGEST_UNIT),
    )
    load: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help("Load of the node during the measurement.", maxLength=LONGEST_TEXT),
    )
    better: Direction = field(
        default=Direction.LOWER,
        validator=instance_of(Direction),
        metadata=key_help("Which values are better: lower or higher."),
    )

    @property
    def effect(self) -> Effect:
        """The effect that this figure alone shows."""
        gain = self.tiers_only - self.profile
        if self.better is Direction.HIGHER:
            gain = -gain
        # 5.4 - 5.3 is more than 0.1: each written number was rounded to a multiple of its ulp.
        inexact = 2 * math.ulp(max(self.tiers_only, self.profile))
        if abs(gain) <= self.spread + inexact:
            return Effect.WITHIN_SPREAD
        return Effect.BETTER if gain > 0 else Effect.WORSE

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        values = (
            f"{self.measure} {self.profile:g}{unit} with the profile, "
            f"{self.tiers_only:g}{unit} without, spread {self.spread:g}{unit}"
        )
        return f"{values} ({self.load})" if self.load else values


@frozen
class Evidence:
    """Measurements, their environment, and their expiry date. All text is free except dates.

    ``effect`` is the author's conclusion. A measured effect needs figures that show it and what is
    needed to repeat the measurement.
    """

    machine: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help("Machine of the measurement.", maxLength=LONGEST_TEXT),
    )
    kernel: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help("Kernel version.", maxLength=LONGEST_TEXT),
    )
    engine: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help("Version of scx_layered.", maxLength=LONGEST_TEXT),
    )
    application: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help("Version of the program.", maxLength=LONGEST_TEXT),
    )
    before: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help("Measurement without the profile.", maxLength=LONGEST_TEXT),
    )
    after: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help("Measurement with the profile.", maxLength=LONGEST_TEXT),
    )
    date: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help("Date of the measurement: YYYY-MM-DD.", maxLength=LONGEST_TEXT),
    )
    expires: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help(
            "Date from which to measure again: YYYY-MM-DD. Advice only.", maxLength=LONGEST_TEXT
        ),
    )
    effect: Effect | None = field(
        default=None,
        validator=optional(instance_of(Effect)),
        metadata=key_help(
            "Effect compared with the pod's tier alone. All but 'not measured' need kernel, "
            "engine, figures, and command or source."
        ),
    )
    command: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help("Command that repeats the measurement.", maxLength=LONGEST_TEXT),
    )
    source: str = field(
        default="",
        validator=_IS_TEXT,
        metadata=key_help("Where the raw records are.", maxLength=LONGEST_TEXT),
    )
    figures: tuple[Figure, ...] = field(
        default=(),
        validator=and_(max_len(MOST_FIGURES), deep_iterable(instance_of(Figure))),
        metadata=key_help(f"Measured values, at most {MOST_FIGURES}."),
    )

    def __attrs_post_init__(self) -> None:
        if problems := list(_effect_problems(self)):
            raise ValueError("; ".join(problems))

    def expired_on(self, today: dt.date) -> bool:
        """Whether it has expired on *today*. False if it has no valid date."""
        until = iso_date(self.expires)
        return until is not None and until <= today


def _effect_problems(evidence: Evidence) -> Iterator[str]:
    """Yield what contradicts the stated effect, or what is missing for it."""
    effect, shown = evidence.effect, {figure.effect for figure in evidence.figures}
    if effect is Effect.NOT_MEASURED:
        if evidence.figures or evidence.before or evidence.after:
            yield f"effect {effect.value!r} contradicts figures, before and after; leave them out"
    elif effect is not None:
        needed = ("engine", "figures", "kernel")
        missing = [name for name in needed if not getattr(evidence, name)]
        if not (evidence.command or evidence.source):
            missing.append("command or source")
        if missing:
            yield f"effect {effect.value!r} needs {', '.join(missing)}"
        elif not _supports(effect, shown):
            yield f"effect {effect.value!r} is not what the figures show: {_listed(shown)}"
    elif evidence.figures:
        yield f"effect is required beside figures; they show: {_listed(shown)}"


def _supports(effect: Effect, shown: set[Effect]) -> bool:
    """Whether figures that show *shown* support *effect*. A gain may have a price, or reverse."""
    return shown == {effect} if effect is Effect.WITHIN_SPREAD else effect in shown


def _listed(shown: set[Effect]) -> str:
    return ", ".join(effect.value for effect in Effect if effect in shown)


def iso_date(text: str) -> dt.date | None:
    """Return the date in *text* (YYYY-MM-DD). None if it is invalid."""
    try:
        return dt.date.fromisoformat(text.strip())
    except ValueError:
        return None
