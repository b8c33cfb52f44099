"""Events of demotions, violations, profiles and plugins."""

from collections.abc import Mapping, Sequence

from temper_core.events import kinds
from temper_core.events.event_log import EventLog
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.records.events import EventLevel
from temper_core.records.lint import Severity, Violation
from temper_core.records.plans import LayerPlan
from temper_core.records.snapshots import PluginState

DEMOTED = "demoted"
SET_ASIDE = "set_aside"


class Demotions:
    """The tiers and groups that the plan gives less than they are entitled to."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._plan: LayerPlan | None = None
        self._standing: Mapping[str, str] = {}

    def look(self, plan: LayerPlan | None) -> None:
        """Record the demotions that began and ended with another plan."""
        if plan is self._plan:
            return
        self._plan = plan
        notes = plan.notes if plan is not None else ()
        before = self._standing
        self._standing = {note.subject: note.message for note in notes if note.code == DEMOTED}
        for subject, message in self._standing.items():
            if subject not in before:
                self._events.record(kinds.DEMOTION_BEGAN.name, subject, message)
        for subject in before.keys() - self._standing.keys():
            self._events.record(kinds.DEMOTION_ENDED.name, subject, before[subject])


class Violations:
    """The broken invariants and their subjects."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._standing: Mapping[tuple[str, str], Violation] = {}

    def look(self, violations: Sequence[Violation], at: float) -> None:
        """Record the violations that began and ended. *at* is the time of the observation."""
        if not violations and not self._standing:
            return
        before = self._standing
        self._standing = {(v.invariant, v.subject): v for v in violations}
        for key, violation in self._standing.items():
            if key not in before:
                is_error = violation.severity is Severity.ERROR
                level = EventLevel.ERROR if is_error else EventLevel.WARNING
                reason = f"{violation.invariant}: {violation.message}"
                kind = kinds.VIOLATION_BEGAN.name
                self._events.record(kind, violation.subject, reason, level=level)
        for key in before.keys() - self._standing.keys():
            invariant, subject = key
            reason = f"{invariant}: lasted {max(0.0, at - before[key].since):.0f} s"
            self._events.record(kinds.VIOLATION_ENDED.name, subject, reason)


class Profiles:
    """The loaded profiles, and the failures."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._catalogue: ProfileCatalogue | None = None

    def look(self, catalogue: ProfileCatalogue) -> None:
        """Record the changes. The first call records only failures."""
        if catalogue is self._catalogue:
            return
        former, self._catalogue = self._catalogue, catalogue
        failures = former.failures if former is not None else ()
        if catalogue.failures != failures:
            for failure in catalogue.failures:
                if failure not in failures:
                    subject = failure.profile or failure.source
                    reason = f"{failure.source}: {failure.reason}"
                    self._events.record(kinds.PROFILE_FAILED.name, subject, reason)
        if former is not None and catalogue.profiles != former.profiles:
            self._record_profiles(former, catalogue)

    def _record_profiles(self, former: ProfileCatalogue, catalogue: ProfileCatalogue) -> None:
        for loaded in catalogue.profiles:
            if loaded not in former.profiles:
                self._events.record(kinds.PROFILE_LOADED.name, loaded.profile.id, loaded.source)
        current = {(loaded.source, loaded.profile.id) for loaded in catalogue.profiles}
        for loaded in former.profiles:
            if (loaded.source, loaded.profile.id) not in current:
                self._events.record(kinds.PROFILE_DROPPED.name, loaded.profile.id, loaded.source)


class Plugins:
    """The plugins and parts of plugins that are set aside."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._aside: Mapping[str, str] = {}

    def look(self, plugins: Sequence[PluginState]) -> None:
        """Record the parts that were set aside, and those that are called again."""
        aside: dict[str, str] = {}
        for plugin in plugins:
            if plugin.state == SET_ASIDE:
                aside[plugin.name] = plugin.failure
            for part in plugin.lost:
                name, _, reason = part.partition(": ")
                aside[f"{plugin.name}: {name}"] = reason
        if aside.keys() == self._aside.keys():
            return
        before, self._aside = self._aside, aside
        for name, reason in aside.items():
            if name not in before:
                self._events.record(kinds.PLUGIN_SET_ASIDE.name, name, reason)
        for name in before.keys() - aside.keys():
            self._events.record(kinds.PLUGIN_REVIVED.name, name)
