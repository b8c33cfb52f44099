"""A maintenance window: the time of the day in which measurements may begin."""

import datetime as dt
import re

from attrs import frozen

from temper_core import InputError

FORM = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")
DAY = dt.timedelta(days=1)


@frozen
class Window:
    """From *begins* until *ends*, each day. It goes over midnight if it ends before it begins."""

    begins: dt.time
    ends: dt.time

    def opens_in(self, now: dt.datetime) -> float:
        """Return the seconds from *now* until the window is open, 0 while it is."""
        time = now.time()
        if self.begins <= self.ends:
            is_open = self.begins <= time < self.ends
        else:
            is_open = time >= self.begins or time < self.ends
        if is_open:
            return 0.0
        opening = dt.datetime.combine(now.date(), self.begins, now.tzinfo)
        return ((opening if opening > now else opening + DAY) - now).total_seconds()


def parsed_window(text: str) -> Window:
    """Read ``22:00-05:30``. Raise InputError for any other form, or a window of no length."""
    match = FORM.fullmatch(text)
    if match is None:
        raise InputError(f"--window {text!r}: must be HH:MM-HH:MM, such as 22:00-05:30")
    begins, ends = (dt.time(int(match[at]), int(match[at + 1])) for at in (1, 3))
    if begins == ends:
        raise InputError(f"--window {text!r}: begins when it ends")
    return Window(begins, ends)
