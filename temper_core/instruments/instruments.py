"""The instruments of the agent: opened once, called in isolation, closed at the end."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import structlog
from attrs import evolve, frozen

from temper_core.errors import PluginError, TemperError
from temper_core.instruments.context import AgentParts, Context
from temper_core.instruments.upkeep import NO_UPKEEP
from temper_core.plain_json import plain_value
from temper_core.plugin_host import Contribution, PluginHost
from temper_core.records.checks import Check, unknown
from temper_core.records.contributions import Exporter
from temper_core.records.endpoints import Endpoint
from temper_core.records.events import EventKind
from temper_core.records.instruments import Instrument, OpenInstrument
from temper_core.records.snapshots import InstrumentCost, Section, Snapshot

LARGEST_SECTION_BYTES = 256 * 1024
CORE_PLUGIN = ""
"""The plugin of what the core itself contributes."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class _AtWork:
    """An instrument that is open, and the plugin that owns it."""

    plugin: str
    record: Instrument
    instrument: OpenInstrument

    def implements(self, method: str) -> bool:
        """Whether the instrument has a method of its own of that name."""
        own = getattr(type(self.instrument), method, None)
        return own is not None and own is not getattr(OpenInstrument, method)

    def part(self, method: str) -> str:
        """Name what the host sets aside where *method* fails."""
        return f"instrument {self.record.name}, {method}"


class Instruments:
    """Opens every instrument, calls each method that it implements, and closes them.

    A method that fails is set aside by the host.
    """

    def __init__(
        self,
        host: PluginHost | None = None,
        found: Sequence[Contribution[Instrument]] = (),
        parts: AgentParts | None = None,
    ) -> None:
        self._host = host or PluginHost()
        self._found = found
        self._parts = parts
        self._at_work: list[_AtWork] = []
        self._endpoints: tuple[tuple[str, Endpoint], ...] = ()
        self._unopened: tuple[str, ...] = ()
        self._upkeep = parts.upkeep if parts is not None else NO_UPKEEP

    @property
    def defects(self) -> tuple[str, ...]:
        """What could not be opened, and what the bounds have taken from those that are."""
        return (*self._unopened, *self._upkeep.defects)

    def costs(self) -> Mapping[str, InstrumentCost]:
        """Return what each costs besides its line of the agent's CPU time."""
        return self._upkeep.costs()

    def open(self) -> None:
        """Open all of them, then ask for their endpoints and the kinds of their events."""
        for contribution in self._found:
            name = contribution.record.name
            try:
                opened = self._open(contribution)
            except TemperError as error:
                log.warning("instrument_not_opened", instrument=name, reason=str(error))
                self._unopened = (*self._unopened, f"instrument {name}: {error}")
                self._release(name)
            else:
                self._at_work.append(_AtWork(contribution.plugin, contribution.record, opened))
        self._endpoints = tuple(self._listed("endpoints", Endpoint))
        for each in self._implementing("events"):
            self._declare(each)

    def tell(self, snapshot: Snapshot) -> None:
        """Pass the last observation on to each."""
        for each in self._implementing("tell"):
            self._try(each, "tell", each.instrument.tell, snapshot)

    def with_sections(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* with what each adds to it. A section that is too large is a defect."""
        found: dict[str, Section] = {}
        defects: list[str] = []
        for each in self._implementing("section"):
            name = each.record.name
            told = self._try(each, "section", _plain_section, each.instrument, snapshot)
            if told is None:
                continue
            content, size = told
            if size > LARGEST_SECTION_BYTES:
                most = f"{LARGEST_SECTION_BYTES} bytes as JSON"
                defects.append(f"instrument {name}: its section is larger than {most}, and dropped")
            else:
                found[name] = Section(each.record.section_version, content)
        return evolve(snapshot, sections=found, defects=(*snapshot.defects, *defects))

    def endpoints(self) -> Sequence[tuple[str, Endpoint]]:
        """Return the endpoints, each with its plugin's name."""
        return self._endpoints

    def exporters(self) -> Iterator[tuple[str, Exporter]]:
        """Yield an exporter per instrument with metrics, each with its plugin's name."""
        for each in self._implementing("metrics"):
            collect = partial(self._charged_metrics, each)
            yield each.plugin, Exporter(each.record.name, collect)

    def checks(self) -> Sequence[tuple[str, Check]]:
        """Return the checks of all of them, each with its plugin's name.

        One that could not be asked is a check whose state is unknown.
        """
        found: list[tuple[str, Check]] = []
        for each in self._implementing("checks"):
            try:
                given = self._call(each, "checks", each.instrument.checks, of=Check)
            except PluginError as error:
                given = [unknown(each.record.name, f"could not be asked: {error.reason}")]
            found += [(each.plugin, check) for check in given]
        return found

    def close(self) -> None:
        """Close each. One that fails keeps no other from being closed."""
        while self._at_work:
            each = self._at_work.pop()
            try:
                self._call(each, "close", each.instrument.close)
            except PluginError as error:
                name = each.record.name
                log.warning("instrument_not_closed", instrument=name, reason=error.reason)
            self._release(each.record.name)
        self._upkeep.close()

    def _release(self, name: str) -> None:
        """End what the instrument has begun through its context."""
        if self._parts is not None:
            self._parts.helpers.stop_all(name)
            self._parts.trials.release_all(name)

    def _open(self, contribution: Contribution[Instrument]) -> OpenInstrument:
        record, parts = contribution.record, self._parts
        if parts is None:
            raise PluginError(contribution.plugin, "has no agent to be opened in")
        context = Context(record.name, parts, parts.state(record.name, record.state_limit_bytes))
        opened: OpenInstrument = self._host.call(
            contribution.plugin,
            record.open,
            context,
            allows=(TemperError,),
            part=f"instrument {record.name}",
        )
        if not callable(getattr(opened, "close", None)):
            reason = f"opened {type(opened).__name__}, which has no method 'close'"
            raise PluginError(contribution.plugin, reason)
        return opened

    def _declare(self, each: _AtWork) -> None:
        kinds = self._try(each, "events", each.instrument.events, of=EventKind) or ()
        problem = self._parts.recorder.declare(each.record.name, kinds) if self._parts else ""
        if problem:
            log.warning("event_kinds_refused", instrument=each.record.name, reason=problem)
            self._unopened = (*self._unopened, f"instrument {each.record.name}: {problem}")

    def _charged_metrics(self, each: _AtWork, _snapshot: Snapshot) -> Iterable[Any]:
        charge = self._parts.charge(each.record.name) if self._parts else None
        return list(_charged(charge, each.instrument.metrics, ()))

    def _implementing(self, method: str) -> Iterator[_AtWork]:
        return (each for each in tuple(self._at_work) if each.implements(method))

    def _listed(self, method: str, of: type[Any]) -> Iterator[tuple[str, Any]]:
        for each in self._implementing(method):
            function = getattr(each.instrument, method)
            for record in self._try(each, method, function, of=of) or ():
                yield each.plugin, record

    def _try(
        self,
        each: _AtWork,
        method: str,
        function: Callable[..., Any],
        *arguments: Any,  # noqa: ANN401 - whatever the method takes
        of: type[Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever it returns
        """Call, and return None where it fails: the host has counted that and logged it."""
        try:
            return self._call(each, method, function, *arguments, of=of)
        except PluginError:
            return None

    def _call(
        self,
        each: _AtWork,
        method: str,
        function: Callable[..., Any],
        *arguments: Any,  # noqa: ANN401 - whatever the method takes
        of: type[Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever it returns
        part = each.part(method)
        charge = self._parts.charge(each.record.name) if self._parts else None
        return self._host.call(
            each.plugin, _charged, charge, function, arguments, each=of, part=part
        )


def _charged(charge: Any, function: Callable[..., Any], arguments: Iterable[Any]) -> Any:  # noqa: ANN401
    """Call *function* in the plugin's thread, at the instrument's expense."""
    if charge is None:
        return function(*arguments)
    with charge:
        return function(*arguments)


def _plain_section(
    instrument: OpenInstrument, snapshot: Snapshot
) -> tuple[Mapping[str, Any], int] | None:
    """Return an instrument's section, and its size as JSON; None where it has none."""
    content = instrument.section(snapshot)
    if content is None:
        return None
    plain = plain_value(content)
    if not isinstance(plain, dict):
        raise TypeError(f"a section is a mapping, not {type(content).__name__}")
    return plain, len(json.dumps(plain, allow_nan=False))
