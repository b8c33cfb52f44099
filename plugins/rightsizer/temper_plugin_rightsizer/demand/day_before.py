"""The time of the day before whose demand is likely to come next."""

DAY_S = 86_400
HOUR_S = 3600


def hours_to_come(now: float, window_s: int) -> range:
    """Return the seconds of the day before that followed this time of day.

    They are as long as the window of *window_s* seconds that ends at *now*, and do not overlap it.
    They begin with a whole hour, as the history keeps hours. With a window of a day or more there
    are none.
    """
    begin = int(now) // HOUR_S * HOUR_S - DAY_S
    return range(begin, begin + max(min(window_s, DAY_S - window_s), 0))
