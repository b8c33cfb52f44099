"""Readers of option values: durations (``90d``, ``12h``, ``5m``, ``0.5s``) and a factor."""

import re
from datetime import timedelta
from fractions import Fraction

import click

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd])")
_FACTOR = re.compile(r"[01](?:\.[0-9]{1,6})?")
LONGEST = timedelta(days=36_500)


def read_duration(_: click.Context, __: click.Parameter, text: str) -> timedelta:
    """Read a duration. Raise click.BadParameter for any other text."""
    matched = _DURATION.fullmatch(text)
    if matched is None:
        raise click.BadParameter(f"{text!r} is not a duration such as 90d, 12h, 5m or 0.5s")
    duration = timedelta(**{_UNITS[matched[2]]: float(matched[1])})
    if not timedelta(0) < duration <= LONGEST:
        raise click.BadParameter(f"{text!r} must be above 0 and at most 36500d")
    return duration


def read_pause(context: click.Context, parameter: click.Parameter, text: str) -> timedelta:
    """Read a duration that may be ``0s``."""
    return timedelta(0) if text == "0s" else read_duration(context, parameter, text)


def read_factor(_: click.Context, __: click.Parameter, text: str) -> Fraction:
    """Read a factor, without rounding. Raise click.BadParameter for any other text."""
    if _FACTOR.fullmatch(text) and 0 < Fraction(text) <= 1:
        return Fraction(text)
    raise click.BadParameter(f"{text!r} must be a number above 0 and at most 1, such as 0.7")
