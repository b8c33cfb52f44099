"""The instruments of the agent: opened once, called in isolation, closed at the end."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import structlog
from attrs import evolve, frozen

from temper_core.errors import PluginError, TemperError
from temper_core.instruments.context import AgentParts, Context
from temper_core.instruments.plain_section import PlainSection
from temper_core.instruments.upkeep import NO_UPKEEP
from temper_core.plugin_host import Contribution, PluginHost
from temper_core.plugin_host.plain_values import kind_of
from temper_core.plugin_host.shared_time import SharedTime, time_of_a_look
from temper_core.records.checks import Check, unknown
from temper_core.records.contributions import Exporter
from temper_core.records.endpoints import Endpoint
from temper_core.records.events import EventKind
from temper_core.records.instruments import Instrument, OpenInstrument
from temper_core.records.restored import Restored
from temper_core.records.snapshots import InstrumentCost, Section, Snapshot

LARGEST_SECTION_BYTES = 256 * 1024
MOST_DEFECTS = 8
LONGEST_DEFECT = 500
"""The number of defects of one instrument, and the length of each in characters."""
METHODS = ("tell", "let_go", "section", "defects", "endpoints", "metrics", "checks", "events")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class _AtWork:
    """An open instrument, the plugin that owns it, and the names of the methods it overrides.

    No attribute of ``instrument`` is read outside of the plugin's thread.
    """

    plugin: str
    record: Instrument
    instrument: OpenInstrument
    methods: frozenset[str]

    def implements(self, method: str) -> bool:
        """Whether the instrument overrides the method of that name."""
        return method in self.methods

    def part(self, method: str) -> str:
        """Return the name of the part that the host sets aside if *method* fails."""
        return f"instrument {self.record.name}, {method}"


class Instruments:
    """Opens every instrument, calls the methods that it implements, and closes it.

    The host sets a failing method aside.
    """

    def __init__(
        self,
        host: PluginHost | None = None,
        contributions: Sequence[Contribution[Instrument]] = (),
        parts: AgentParts | None = None,
        look_time: SharedTime | None = None,
    ) -> None:
        self._host = host or PluginHost()
        self._contributions = contributions
        self._parts = parts
        self._at_work: list[_AtWork] = []
        deadline_s = self._host.settings.plugin_host.deadline_s
        self._look_time = look_time or time_of_a_look(self._host, deadline_s)
        self._sections: defaultdict[str, PlainSection] = defaultdict(PlainSection)
        self._endpoints: tuple[tuple[str, Endpoint], ...] = ()
        self._unopened: tuple[str, ...] = ()
        self._let_go_of: set[str] = set()
        self._upkeep = parts.upkeep if parts is not None else NO_UPKEEP

    @property
    def names(self) -> frozenset[str]:
        """The names of the open instruments."""
        return frozenset(work.record.name for work in self._at_work)

    @property
    def defects(self) -> tuple[str, ...]:
        """Instruments that could not be opened, and files lost to bounds, one line each."""
        return (*self._unopened, *self._upkeep.defects)

    def costs(self) -> Mapping[str, InstrumentCost]:
        """Return the cost of each instrument beside its line of the agent's CPU time."""
        return self._upkeep.costs()

    def open(self) -> None:
        """Open all instruments, then collect their endpoints and the kinds of their events."""
        for contribution in self._contributions:
            name = contribution.record.name
            try:
                opened = self._open(contribution)
            except TemperError as error:
                log.warning("instrument_not_opened", instrument=name, reason=str(error))
                self._unopened = (*self._unopened, f"instrument {name}: {error}")
                self._release(name)
            else:
                self._at_work.append(opened)
        self._endpoints = tuple(self._listed("endpoints", Endpoint))
        for work in self._implementing("events"):
            self._declare(work)

    def tell(self, snapshot: Snapshot) -> None:
        """Pass the last observation to each instrument. One that is lost has to let go."""
        for work in self._implementing("tell"):
            self._in_look(work, "tell", _method, work.instrument, "tell", snapshot)
        for work in self._implementing("let_go"):
            if self._host.why_lost(work.plugin, work.part("tell")):
                self._let_go(work)

    def with_sections(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* with the instruments' sections. A too large section is a defect.

        This begins a look, and ``tell`` ends it.
        """
        self._look_time.begin()
        sections: dict[str, Section] = {}
        defects: list[str] = []
        for work in self._implementing("section"):
            name = work.record.name
            read = self._sections[name].of
            result = self._in_look(work, "section", read, work.instrument, snapshot)
            if result is None:
                continue
            content, size = result
            if size > LARGEST_SECTION_BYTES:
                most = f"{LARGEST_SECTION_BYTES} bytes as JSON"
                defects.append(f"instrument {name}: its section is larger than {most}, and dropped")
            else:
                sections[name] = Section(work.record.section_version, content)
        defects += self._own_defects()
        return evolve(snapshot, sections=sections, defects=(*snapshot.defects, *defects))

    def _own_defects(self) -> Iterator[str]:
        """Yield the defects that instruments report."""
        for work in self._implementing("defects"):
            texts = self._in_look(work, "defects", _method, work.instrument, "defects", of=str)
            for text in (texts or ())[:MOST_DEFECTS]:
                yield f"instrument {work.record.name}: {_one_line(text)}"

    def let_go(self) -> None:
        """Let all instruments let go, each as if its ``tell`` were set aside."""
        for work in self._implementing("let_go"):
            self._let_go(work)

    def _let_go(self, work: _AtWork) -> None:
        """Call ``let_go`` once, and again at the next look if it fails, until it is set aside."""
        name = work.record.name
        if name in self._let_go_of:
            return
        with suppress(PluginError):
            self._call(work, "let_go", _method, work.instrument, "let_go")
            self._let_go_of.add(name)

    def endpoints(self) -> Sequence[tuple[str, Endpoint]]:
        """Return the endpoints, each with its plugin's name."""
        return self._endpoints

    def exporters(self) -> Iterator[tuple[str, Exporter]]:
        """Yield an exporter for each instrument with metrics, with its plugin's name."""
        for work in self._implementing("metrics"):
            collect = partial(self._charged_metrics, work)
            yield work.plugin, Exporter(work.record.name, collect)

    def checks(self) -> Sequence[tuple[str, Check]]:
        """Return the checks of all instruments, each with its plugin's name.

        A failing ``checks`` method counts as one check whose state is unknown.
        """
        all_checks: list[tuple[str, Check]] = []
        for work in self._implementing("checks"):
            try:
                answers = self._call(work, "checks", _method, work.instrument, "checks", of=Check)
            except PluginError as error:
                answers = [unknown(work.record.name, f"failed: {error.reason}")]
            all_checks += [(work.plugin, check) for check in answers]
        return all_checks

    def close(self) -> None:
        """Close each instrument. A failure does not stop the others from being closed."""
        while self._at_work:
            work = self._at_work.pop()
            try:
                self._call(work, "close", _method, work.instrument, "close")
            except PluginError as error:
                name = work.record.name
                log.warning("instrument_not_closed", instrument=name, reason=error.reason)
            self._release(work.record.name)
        self._upkeep.close()

    def _release(self, name: str) -> None:
        """End the helpers and trials that the instrument has started."""
        if self._parts is not None:
            self._parts.helpers.stop_all(name)
            self._parts.trials.release_all(name)

    def _open(self, contribution: Contribution[Instrument]) -> _AtWork:
        record, parts = contribution.record, self._parts
        if parts is None:
            raise PluginError(contribution.plugin, "cannot be opened without an agent")
        state = parts.state(record.name, record.state_limit_bytes)
        context = Context(record.name, parts, state, partial(self._answer, contribution))
        opened, methods = self._host.call(
            contribution.plugin,
            _opened,
            contribution,
            context,
            allows=(TemperError,),
            part=f"instrument {record.name}",
        )
        return _AtWork(contribution.plugin, record, opened, methods)

    def _answer(
        self,
        contribution: Contribution[Instrument],
        function: Callable[[Restored], object],
        restored: Restored,
    ) -> None:
        """Call the function that an instrument gave to ``restore``. The host counts a failure."""
        part = f"instrument {contribution.record.name}, restore"
        with suppress(PluginError):
            self._host.call(contribution.plugin, function, restored, part=part)

    def _declare(self, work: _AtWork) -> None:
        kinds: Sequence[EventKind] = self._answered(work, "events", EventKind)
        problem = self._parts.recorder.declare(work.record.name, kinds) if self._parts else ""
        if problem:
            log.warning("event_kinds_refused", instrument=work.record.name, reason=problem)
            self._unopened = (*self._unopened, f"instrument {work.record.name}: {problem}")

    def _charged_metrics(self, work: _AtWork, _snapshot: Snapshot) -> Iterable[Any]:
        charge = self._parts.charge(work.record.name) if self._parts else None
        return list(_charged(charge, _method, (work.instrument, "metrics")))

    def _implementing(self, method: str) -> Iterator[_AtWork]:
        return (work for work in tuple(self._at_work) if work.implements(method))

    def _listed(self, method: str, of: type[Any]) -> Iterator[tuple[str, Any]]:
        for work in self._implementing(method):
            for record in self._answered(work, method, of):
                yield work.plugin, record

    def _answered(self, work: _AtWork, method: str, of: type[Any]) -> Sequence[Any]:
        """Return the records that *method* returns, none on failure."""
        with suppress(PluginError):
            return self._call(work, method, _method, work.instrument, method, of=of) or ()
        return ()

    def _in_look(
        self,
        work: _AtWork,
        method: str,
        function: Callable[..., Any],
        *arguments: Any,  # noqa: ANN401 - the method's own
        of: type[Any] | None = None,
    ) -> Any:  # noqa: ANN401 - the method's result
        """Call within the time of the look. Return None on failure, which the host has logged."""
        with suppress(PluginError):
            return self._call(work, method, function, *arguments, of=of, by=self._look_time.call)
        return None

    def _call(
        self,
        work: _AtWork,
        method: str,
        function: Callable[..., Any],
        *arguments: Any,  # noqa: ANN401 - the method's own
        of: type[Any] | None = None,
        by: Callable[..., Any] | None = None,
    ) -> Any:  # noqa: ANN401 - the method's result
        """Call in the plugin's thread, charged to the instrument. Raise PluginError on failure."""
        charge = self._parts.charge(work.record.name) if self._parts else None
        call = by or self._host.call
        return call(
            work.plugin, _charged, charge, function, arguments, items=of, part=work.part(method)
        )


def _opened(
    contribution: Contribution[Instrument], context: Context
) -> tuple[OpenInstrument, frozenset[str]]:
    """Open the instrument in the plugin's thread. Return it and the methods that it overrides."""
    opened = contribution.record.open(context)
    if not callable(getattr(opened, "close", None)):
        reason = f"opened {kind_of(opened)}, which has no method 'close'"
        raise PluginError(contribution.plugin, reason)
    own = {method: getattr(type(opened), method, None) for method in METHODS}
    overridden = (
        method
        for method, function in own.items()
        if function is not None and function is not getattr(OpenInstrument, method)
    )
    return opened, frozenset(overridden)


def _method(instrument: OpenInstrument, method: str, *arguments: Any) -> Any:  # noqa: ANN401
    """Call *method* in the plugin's thread, where its look-up may run the plugin's code too."""
    return getattr(instrument, method)(*arguments)


def _charged(charge: Any, function: Callable[..., Any], arguments: Iterable[Any]) -> Any:  # noqa: ANN401
    """Call *function* in the plugin's thread, charged to the instrument."""
    if charge is None:
        return function(*arguments)
    with charge:
        return function(*arguments)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_DEFECT]
