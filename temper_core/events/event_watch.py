"""Derives events from changes of the agent's state, so that its parts need not record them."""

from collections.abc import Iterable
from typing import Protocol

from temper_core.events import kinds
from temper_core.events.event_keeper import EventKeeper
from temper_core.events.event_log import EventLog
from temper_core.events.node_watch import Demotions, Plugins, Profiles, Violations
from temper_core.events.scheduler_watch import Requests, SchedulerWatch, WatchedScheduler
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import Snapshot

OUT_OF_ORDER = (
    "the agent before this one did not stop in order: it was killed, it failed, or its watchdog "
    "ended it (the stacks are then the last lines of its log)"
)
"""The reason of a start for which the events have no stop of the agent before."""


class WatchedProfiles(Protocol):
    """The profiles of the node."""

    @property
    def catalogue(self) -> ProfileCatalogue:
        """The loaded profiles, and the failures."""
        ...


class EventWatch:
    """Compares everything once a turn, on the loop's thread. Unchanged objects are skipped."""

    def __init__(
        self,
        events: EventLog,
        keeper: EventKeeper,
        scheduler: WatchedScheduler,
        requests: Requests,
        profiles: WatchedProfiles,
    ) -> None:
        self._events = events
        self._keeper = keeper
        self._profiles = profiles
        self._snapshot: Snapshot | None = None
        self._of_scheduler = SchedulerWatch(events, scheduler, requests)
        self._of_demotions = Demotions(events)
        self._of_violations = Violations(events)
        self._of_profiles = Profiles(events)
        self._of_plugins = Plugins(events)

    @property
    def defect(self) -> str:
        """Why events are not kept over a restart, empty if they are."""
        return self._keeper.defect

    def open(self) -> None:
        """Load the earlier events, and record the start of the agent."""
        self._keeper.open()
        self._events.record(kinds.AGENT_STARTED.name, reason=self._last_end())

    def _last_end(self) -> str:
        """Return why the last agent ended, by the kept events. Empty if it was in order."""
        own = {kinds.AGENT_STARTED.name, kinds.AGENT_STOPPED.name}
        runs = [event.kind for event in self._events.after() if event.kind in own]
        return OUT_OF_ORDER if runs[-1:] == [kinds.AGENT_STARTED.name] else ""

    def opened(self, defects: Iterable[str]) -> None:
        """Record the instruments that could not be opened."""
        for defect in defects:
            self._events.record(kinds.INSTRUMENT_FAILED.name, reason=defect)

    def turn(self, plan: LayerPlan | None, snapshot: Snapshot | None) -> None:
        """Record the changes since the last turn."""
        self._of_scheduler.look()
        self._of_demotions.look(plan)
        self._of_profiles.look(self._profiles.catalogue)
        if snapshot is not None and snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._of_violations.look(snapshot.violations, snapshot.at)
            self._of_plugins.look(snapshot.plugins)
        self._events.record_dropped()

    def stop(self) -> None:
        """Record the end of the agent, and end every stream of events."""
        self._of_scheduler.look()
        self._events.record(kinds.AGENT_STOPPED.name)
        self._events.close()

    def close(self) -> None:
        """Write the remaining events."""
        self._keeper.close()
