"""How often descendants of helper processes are looked for, so that it takes little CPU time."""

from enum import Enum

from attrs import define


class FamilyLook(Enum):
    """The subject of a look."""

    NOTHING = 0
    NEW = 1
    """Known descendants, and those among new processes."""
    ALL = 2


NEW_SHARE = 400
"""Looks at new processes take at most 1/400 of the time. They list /proc, if there are any."""
ALL_SHARE = 4_000
"""Searches through all processes take at most 1/4000."""


@define
class FamilyPace:
    """Chooses the next look from the duration of the last ones. All times are in seconds."""

    _new_due_s: float = 0.0
    _all_due_s: float = 0.0

    def due(self, now_s: float) -> FamilyLook:
        """Return what to look for now."""
        if now_s >= self._all_due_s:
            return FamilyLook.ALL
        return FamilyLook.NEW if now_s >= self._new_due_s else FamilyLook.NOTHING

    def took(self, look: FamilyLook, seconds: float, now_s: float) -> None:
        """Note what a look that has ended by *now_s* took."""
        if look is FamilyLook.ALL:
            self._all_due_s = now_s + ALL_SHARE * seconds
        elif look is FamilyLook.NEW:
            self._new_due_s = now_s + NEW_SHARE * seconds
