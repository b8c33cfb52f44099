"""The host: collects the records of every plugin, and counts their failures."""

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from attrs import define, field, frozen

from temper_core.errors import TRACEBACK, NameClash, PluginError, TemperError
from temper_core.plugin_host import answers
from temper_core.plugin_host.admission import admitted
from temper_core.plugin_host.answers import Contested, Reader, Record
from temper_core.plugin_host.call_memory import CallMemory
from temper_core.plugin_host.hosted_plugin import (
    MIB,
    Busy,
    HostedPlugin,
    Hung,
    NotActive,
    Oversized,
    PluginStanding,
)
from temper_core.plugin_host.installed import Installed, installed_plugins
from temper_core.plugin_host.plugin_files import plugin_files
from temper_core.plugin_host.retries import Retries
from temper_core.records.snapshots import PluginState
from temper_core.settings.models import Settings
from temper_core.suggestions import did_you_mean

FAILURES_IN_A_ROW = 3
WARN_EVERY_S = 60.0
ASKED_AGAIN = frozenset({"temper_detectors", "temper_profiles"})
"""The hooks that a plugin is asked although it hung at the start, once it answers."""
LATE = "did not answer at the start of the agent, which asks it only then; restart the agent"

Returned = TypeVar("Returned")


@frozen
class Contribution(Generic[Record]):
    """A record, and the plugin that contributed it."""

    plugin: str
    record: Record


@define(eq=False)
class PluginHost:
    """The plugins of this process. Every method may be called from any thread.

    A plugin is set aside if it cannot be loaded, or if one of its hooks fails. A part of it, such
    as one exporter, is set aside if it hangs, takes too much memory or fails three times in a row.
    The rest of the plugin goes on. A plugin or part that is set aside is not called again, except
    for a part that a client's call made hang, which pauses. Warnings about the settings name their
    *source*, if it is known.
    """

    settings: Settings = field(factory=Settings)
    source: str = ""
    _guests: dict[str, HostedPlugin] = field(factory=dict, init=False)
    _contested: dict[str, tuple[Contested, ...]] = field(factory=dict, init=False)
    _readers: dict[int, tuple[Callable[..., Any], Reader]] = field(factory=dict, init=False)
    _account: Lock = field(factory=Lock, init=False)
    _memory: CallMemory = field(init=False)
    _retries: Retries = field(factory=Retries, init=False)
    _kept: dict[str, dict[str, Any]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._memory = CallMemory(self.settings.plugin_host.call_memory_mib * MIB)

    def add(self, plugin: object, name: str, *, distribution: str = "", version: str = "") -> None:
        """Add *plugin*. Raise PluginError, and keep nothing of it, if it does not fit."""
        if name in self._guests:
            raise PluginError(name, "another plugin already has this name")
        guest = HostedPlugin(name, distribution, version, memory=self._memory)
        guest.admit(lambda: plugin, self._deadline_s)
        self._guests[name] = guest

    def load_installed(self) -> None:
        """Load the installed and allowed plugins, and those of the directory of plugin files.

        If strict, raise PluginError for a misfit.
        """
        by_name: defaultdict[str, list[Installed]] = defaultdict(list)
        for plugin in (*installed_plugins(), *self._files()):
            by_name[plugin.name].append(plugin)
        for name, claimants in by_name.items():
            self._load(name, claimants)
        self._miss(self._allowed or (), "is allowed by [plugin_host] allow, but not installed")
        table = f"has a table of settings{f' in {self.source}' if self.source else ''}"
        known = [guest.name for guest in self._guests.values() if guest.takes_settings]
        self._miss(self.settings.plugins, f"{table}, but is not installed", known)

    def _files(self) -> list[Installed]:
        directory = self.settings.plugin_host.directory
        if not directory:
            return []
        try:
            return plugin_files(Path(directory))
        except OSError as error:
            reason = f"no plugins are loaded from there: {error.strerror}"
            self._warn("plugin_directory_unreadable", directory, reason)
            self._insist(PluginError(directory, reason))
            return []

    def _miss(self, named: Iterable[str], reason: str, known: Collection[str] = ()) -> None:
        for name in sorted(set(named) - set(self._guests)):
            why = reason + did_you_mean(name, known)
            self._warn("plugin_missing", name, why)
            self._insist(PluginError(name, why))

    def gather(self, hook: str, of: type[Record], **given: Any) -> list[Contribution[Record]]:  # noqa: ANN401 - arguments of any hook
        """Collect every plugin's records, without failed plugins and names claimed twice."""
        self._kept.pop(hook, None)
        return self.gather_again(hook, of, **given)

    def gather_again(self, hook: str, of: type[Record], **given: Any) -> list[Contribution[Record]]:  # noqa: ANN401 - arguments of any hook
        """Collect the records again, and ask only plugins that have not answered *hook* yet."""
        by_plugin: dict[str, list[Record]] = self._kept.setdefault(hook, {})
        for guest in self._implementing(hook):
            if guest.name in by_plugin:
                continue
            own = MappingProxyType(dict(self.settings.plugins.get(guest.name, {})))
            arguments = (guest.implementations[hook], of, {"settings": own, **given}, guest.name)
            try:
                by_plugin[guest.name] = guest.call(answers.ask, arguments, self._deadline_s)
            except (NotActive, Busy):
                continue
            except PluginError as error:
                self._set_aside(guest, hook, error)
                if _may_be_slow(error):
                    keep = partial(by_plugin.__setitem__, guest.name)
                    self._retries.add(guest, answers.ask, arguments, keep)
        return self._contributions(hook, by_plugin)

    def retry(self) -> bool:
        """Try plugins again that hung at the start. Return whether any has answered since.

        It never waits. ``gather_again`` then has the records of those. Hooks that are asked only
        once are named among the plugin's lost parts.
        """
        returned = self._retries.turn()
        for guest in returned:
            guest.revive()
            asked = self._kept.keys() & guest.implementations.keys() - ASKED_AGAIN
            missed = sorted(hook for hook in asked if guest.name not in self._kept[hook])
            guest.lost.update(dict.fromkeys(missed, LATE))
            self._warn("plugin_returned", guest.name, guest.failure, missed=", ".join(missed))
        return bool(returned)

    def _contributions(
        self, hook: str, by_plugin: Mapping[str, list[Record]]
    ) -> list[Contribution[Record]]:
        contested = self._settle(hook, by_plugin)
        contributions = [
            Contribution(plugin, record)
            for plugin, records in by_plugin.items()
            for record in records
            if contested.isdisjoint(answers.claims(record))
        ]
        for contribution in contributions:
            if pair := answers.reader_of(contribution.record):
                self._readers[id(pair[0])] = pair
        return contributions

    def call(  # noqa: PLR0913 - one for each option of a call
        self,
        plugin: str,
        function: Callable[..., Returned],
        *arguments: Any,  # noqa: ANN401 - whatever the function takes
        items: type[Any] | None = None,
        allows: tuple[type[TemperError], ...] = (),
        part: str = "",
        is_clients: bool = False,
        deadline_s: float | None = None,
    ) -> Returned:
        """Call a function that *plugin* contributed, as *part* of it, or one that calls it.

        Returns its result. A generator becomes a list, because it may raise half way. With
        *items*, every item must be of that type. The results of detectors, invariants and exporters
        are always checked. Raises PluginError for every failure except the errors that the
        contract *allows*, which report a fact about the node and no fault of the plugin. With
        *is_clients* a client caused the call: a part that misses the deadline is called again.
        *deadline_s* takes the place of the settings' own.
        """
        guest = self._guests.get(plugin)
        if guest is None:
            raise PluginError(plugin, "is not loaded")
        read = self._reader_of(function) if items is None else answers.list_of(items)
        try:
            result: Returned = guest.call(
                _read,
                (read, function, arguments, plugin),
                self._deadline_s if deadline_s is None else deadline_s,
                allows,
                part,
                is_clients=is_clients,
            )
        except (NotActive, Busy):
            raise
        except PluginError as error:
            self._note_failure(guest, part, function, error)
            raise
        guest.failures_in_a_row[part] = 0
        return result

    def note_end(self, plugin: str, part: str, failure: str = "", *, is_hung: bool = False) -> None:
        """Count the end of work that *part* of *plugin* did outside of ``call``.

        *failure* is empty if it succeeded. A part that hangs, or fails three times in a row, is
        set aside as in ``call``.
        """
        guest = self._guests[plugin]
        if not failure:
            guest.failures_in_a_row[part] = 0
            return
        kind = Hung if is_hung else PluginError
        self._note_failure(guest, part, self.note_end, kind(plugin, failure))

    def why_lost(self, plugin: str, part: str) -> str:
        """Return why *part* of *plugin* was set aside. Empty if it was not."""
        return self._guests[plugin].lost.get(part, "")

    def revive(self, plugin: str) -> None:
        """Activate a plugin again that was set aside after it was loaded.

        This is for the pod source, which the agent cannot do without. One pause of the machine
        must not cost it the node's pods for good.
        """
        guest = self._guests.get(plugin)
        if guest is not None and guest.standing is PluginStanding.SET_ASIDE:
            guest.revive()

    def states(self) -> tuple[PluginState, ...]:
        """Return every plugin by name, including those set aside."""
        return tuple(self._guests[name].state() for name in sorted(self._guests))

    @property
    def failures(self) -> Mapping[str, int]:
        """The number of failures of each plugin, 0 included."""
        return {name: guest.failures for name, guest in sorted(self._guests.items())}

    def contested(self, hook: str) -> tuple[Contested, ...]:
        """Return the names that went to no plugin when *hook* was last called."""
        return self._contested.get(hook, ())

    @property
    def _deadline_s(self) -> float:
        return self.settings.plugin_host.deadline_s

    @property
    def _allowed(self) -> tuple[str, ...] | None:
        return self.settings.plugin_host.allow

    def _reader_of(self, function: Callable[..., Any]) -> Reader:
        pair = self._readers.get(id(function))
        return pair[1] if pair else answers.read_anything

    def _implementing(self, hook: str) -> Iterator[HostedPlugin]:
        for name in sorted(self._guests):
            if hook in self._guests[name].implementations:
                yield self._guests[name]

    def _load(self, name: str, claimants: list[Installed]) -> None:
        rivals = [plugin.distribution for plugin in claimants]
        guest = HostedPlugin(name, ", ".join(rivals), claimants[0].version, memory=self._memory)
        if name in self._guests:
            clash = NameClash(name, f"is built in; {guest.distribution} cannot replace it")
            self._count(self._guests[name], clash)
            self._warn("plugin_refused", name, clash.reason)
            self._insist(clash)
            return
        self._guests[name] = guest
        if self._allowed is not None and name not in self._allowed:
            guest.standing = PluginStanding.NOT_ALLOWED
            guest.failure = "is not named by [plugin_host] allow"
            return
        if len(claimants) > 1:
            reason = f"is the name of two plugins, of {' and '.join(rivals)}, and goes to neither"
            self._set_aside(guest, "load", NameClash(name, reason))
            return
        try:
            guest.admit(claimants[0].load, self._deadline_s)
        except PluginError as error:
            self._set_aside(guest, "load", error)
            if _may_be_slow(error):
                arguments = (claimants[0].load, name)
                self._retries.add(guest, admitted, arguments, guest.take_in)

    def _settle(self, hook: str, records: Mapping[str, Iterable[answers.NamedRecord]]) -> set[str]:
        contested = answers.find_contested(records)
        before = self._contested.get(hook, ())
        self._contested[hook] = tuple(contested)
        for claim in (claim for claim in contested if claim not in before):
            for plugin in claim.plugins:
                clash = NameClash(plugin, claim.reason)
                self._count(self._guests[plugin], clash)
                self._warn("plugin_name_contested", plugin, clash.reason)
                self._insist(clash)
        return {claim.name for claim in contested}

    def _note_failure(
        self, guest: HostedPlugin, part: str, function: Callable[..., Any], error: PluginError
    ) -> None:
        during = part or getattr(function, "__name__", "call")
        guest.failures_in_a_row[part] += 1
        is_final = isinstance(error, Hung | Oversized)
        if is_final or guest.failures_in_a_row[part] >= FAILURES_IN_A_ROW:
            guest.set_aside(part, error.reason)
            self._count(guest, error)
            event = "plugin_part_set_aside" if part else "plugin_set_aside"
            self._warn_of(event, error, guest, during)
            return
        self._count(guest, error)
        now = time.monotonic()
        if guest.warned_at is None or now - guest.warned_at >= WARN_EVERY_S:
            guest.warned_at = now
            self._warn_of("plugin_call_failed", error, guest, during)

    def _set_aside(self, guest: HostedPlugin, during: str, error: PluginError) -> None:
        guest.standing = PluginStanding.SET_ASIDE
        self._count(guest, error)
        self._warn_of("plugin_set_aside", error, guest, during)
        self._insist(error)

    def _count(self, guest: HostedPlugin, error: PluginError) -> None:
        with self._account:
            guest.failures += 1
            guest.failure = error.reason

    def _insist(self, error: PluginError) -> None:
        if self.settings.plugin_host.strict:
            raise error

    def _warn_of(self, event: str, error: PluginError, guest: HostedPlugin, during: str) -> None:
        facts = {"during": during}
        if os.environ.get(TRACEBACK) and error.__cause__ is not None:
            facts["exception"] = str(error.__cause__)  # plain text, made in the plugin's thread
        self._warn(event, guest.name, error.reason, **facts)

    @staticmethod
    def _warn(event: str, plugin: str, reason: str, **facts: str) -> None:
        # It is slow to import, and a plugin that was left behind may have imported a part of it.
        structlog = sys.modules.get("structlog")
        if structlog is not None and getattr(structlog, "is_configured", bool)():
            structlog.get_logger(__name__).warning(event, plugin=plugin, reason=reason, **facts)
        else:
            # Without a configured log, structlog would write to stdout, among a command's results.
            traceback = facts.get("exception")
            lines = [f"temper: plugin {plugin!r}: {reason}", *([traceback] if traceback else [])]
            sys.stderr.write("\n".join(lines) + "\n")


def load_host(
    settings: Settings, *, extra: Mapping[str, object] = MappingProxyType({}), source: str = ""
) -> PluginHost:
    """Return a host with the core's own plugins *extra* and the installed ones.

    Warnings about the settings name their *source*. With ``[plugin_host] strict``, raises
    PluginError for the first plugin that fails.
    """
    host = PluginHost(settings, source)
    for name, plugin in extra.items():
        host.add(plugin, name, distribution="temper-agent")
    host.load_installed()
    return host


def _may_be_slow(error: PluginError) -> bool:
    """Whether the plugin waited for something until its deadline, and may answer later."""
    return isinstance(error, Hung) and not error.is_busy


def _read(
    read: Reader, function: Callable[..., Any], arguments: tuple[Any, ...], plugin: str
) -> Any:  # noqa: ANN401 - whatever the function returns
    return answers.judged(read, function(*arguments), plugin, function)
