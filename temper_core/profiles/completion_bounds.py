"""The bounds on all profiles of a node that extend others.

A child becomes a profile for each variant of its parent, so files of 400 kB could have 57,600
profiles, which took a quarter of an hour to complete and 1.8 GiB to keep.
"""

from collections.abc import Iterable

from attrs import define, field

from temper_core.profiles.document_bounds import match_count
from temper_core.records.profiles import DerivedProfile, LoadedProfile

MOST_COMPLETED = 2_048
"""Profiles, each variant for itself. Files are at most 1,000, and shipped profiles some 20."""
MOST_COMPLETED_MATCHES = 65_536
"""Matches of these profiles and of their parents. Each takes up to 0.3 ms. The shipped profiles
have 110 together."""


@define(eq=False)
class CompletionRoom:
    """Counts the profiles that are completed from others, and their matches."""

    _profiles: int = field(default=0, init=False)
    _matches: int = field(default=0, init=False)

    def takes(self, matches: Iterable[int]) -> bool:
        """Take profiles with so many matches each, all or none. Return whether there is room."""
        counts = list(matches)
        profiles, total = self._profiles + len(counts), self._matches + sum(counts)
        if profiles > MOST_COMPLETED or total > MOST_COMPLETED_MATCHES:
            return False
        self._profiles, self._matches = profiles, total
        return True

    def takes_children(self, child: DerivedProfile, bases: Iterable[LoadedProfile]) -> bool:
        """Take *child* as completed from each of *bases*, also where that fails."""
        own = match_count(child.given)
        return self.takes(own + _matches_of(base) for base in bases)

    def takes_former(self, former: Iterable[LoadedProfile]) -> bool:
        """Take last good versions. Those that extend nothing take no room."""
        return self.takes(_matches_of(each) for each in former if each.lineage)


def beyond_room() -> str:
    """Return the problem of a profile for which there is no room."""
    return (
        f"all profiles that extend others may be {MOST_COMPLETED} together, counting each variant "
        f"for a machine shape, with {MOST_COMPLETED_MATCHES} matches; this one would exceed that"
    )


def _matches_of(loaded: LoadedProfile) -> int:
    return sum(len(group.match) for group in loaded.profile.thread_groups)
