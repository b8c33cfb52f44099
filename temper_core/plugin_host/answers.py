"""Check plugin results: that they have the specified type, and that no two claim the same name.

Every reader returns copies of plain types. It is called in the plugin's thread, within the
deadline of the call.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

import attrs
from attrs import frozen
from pluggy import HookImpl

from temper_core.errors import PluginError
from temper_core.plugin_host.code_places import defined_at, in_brackets
from temper_core.plugin_host.plain_errors import describe, is_in_authors_code
from temper_core.plugin_host.plain_values import (
    MOST_ITEMS,
    is_record,
    plain_record,
    plain_value,
    shown,
)
from temper_core.records.contributions import (
    Command,
    Detection,
    Detector,
    Exporter,
    Metric,
    MetricSample,
    PodSource,
)
from temper_core.records.declarations import MetricFamily, SettingsTable
from temper_core.records.endpoints import Endpoint
from temper_core.records.histogram import Histogram
from temper_core.records.instruments import Instrument
from temper_core.records.invariants import Invariant
from temper_core.records.lint import Finding
from temper_core.records.profiles import WorkloadProfile

RECORDS: Mapping[str, type[Any]] = {
    "temper_profiles": WorkloadProfile,
    "temper_detectors": Detector,
    "temper_invariants": Invariant,
    "temper_exporters": Exporter,
    "temper_pod_sources": PodSource,
    "temper_instruments": Instrument,
    "temper_commands": Command,
    "temper_endpoints": Endpoint,
    "temper_settings": SettingsTable,
    "temper_metrics": MetricFamily,
}
_SCALARS = (str, int, float, bytes)
CALLBACKS = frozenset({"answer", "check", "collect", "detect", "devices", "load", "open"})
OPTIONAL_CALLBACKS = frozenset({"devices"})


class NamedRecord(Protocol):
    """A contributed record, which has a name for the operator."""

    @property
    def name(self) -> str: ...  # noqa: D102


Record = TypeVar("Record", bound=NamedRecord)
Reader = Callable[[Any, str], Any]
Item = TypeVar("Item")


@frozen
class Contested:
    """A name that more than one plugin claims, so that none of them gets it."""

    name: str
    plugins: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The plugins that claim it, in one line."""
        return f"{self.name!r} is claimed by {' and '.join(self.plugins)}, and goes to neither"


def ask(
    implementations: Iterable[HookImpl], of: type[Record], given: Mapping[str, Any], plugin: str
) -> list[Record]:
    """Call the hook and list its records. Raise PluginError if they are not of the specified type.

    Called in the plugin's thread: a generator raises only when it is listed.
    """
    records: list[Record] = []
    for implementation in implementations:
        names = (*implementation.argnames, *implementation.kwargnames)
        answer = implementation.function(**{name: given[name] for name in names if name in given})
        records += judged(list_of(of), answer, plugin, implementation.function)
    _refuse_doubles(records, plugin)
    return records


def judged(read: Reader, answer: object, plugin: str, function: object) -> Any:  # noqa: ANN401 - what it reads
    """Return what *read* makes of the *answer* of *function*.

    Raises PluginError with the place of *function* if the answer is wrong. An error that the
    plugin's own code raises, such as that of a generator, is raised as it is.
    """
    try:
        return read(answer, plugin)
    except PluginError as error:
        reason = error.reason
    except (TypeError, ValueError) as error:
        if is_in_authors_code(error):
            raise
        reason = describe(error)
    raise PluginError(plugin, f"{reason}{in_brackets(defined_at(function))}")


def listed(answer: object, plugin: str, of: type[Item]) -> list[Item]:
    """Return *answer* as a list of *of*. Raise PluginError unless it is one.

    The items are copies of plain types. With ``object`` they may be anything, and stay as they are.
    """
    if answer is None:
        return []
    try:
        items = list(islice(iter(answer), MOST_ITEMS + 1))  # type: ignore[call-overload]
    except TypeError:
        if hasattr(type(answer), "__iter__"):
            raise
        reason = f"returned {shown(answer)}, which is no list of {of.__name__}"
        raise PluginError(plugin, reason) from None
    if len(items) > MOST_ITEMS:
        raise PluginError(plugin, f"returned more than {MOST_ITEMS} items")
    return items if of is object else [_item(item, plugin, of) for item in items]


def _item(item: object, plugin: str, of: type[Item]) -> Item:
    is_scalar = of in _SCALARS
    if not (issubclass(type(item), of) if is_scalar else is_record(item, of)):
        raise PluginError(plugin, f"returned {shown(item)}, which is no {of.__name__}")
    if not is_scalar:
        _refuse_uncallable(item, plugin)
    copy: Item = plain_value(item)
    return copy


def _refuse_uncallable(record: object, plugin: str) -> None:
    kind: type[Any] = type(record)
    if not attrs.has(kind):
        return
    for name in CALLBACKS & set(attrs.fields_dict(kind)):
        value = getattr(record, name)
        if not callable(value) and (value is not None or name not in OPTIONAL_CALLBACKS):
            reason = f"returned a {kind.__name__} whose {name!r} cannot be called"
            raise PluginError(plugin, reason)


def _refuse_doubles(records: Iterable[NamedRecord], plugin: str) -> None:
    keys: set[object] = set()
    for record in records:
        # One profile id may be tuned for several machines. Any other name is unique.
        shape = record.machine_shape if isinstance(record, WorkloadProfile) else None
        # One name may be a command of several groups.
        group = record.under if isinstance(record, Command) else None
        if (record.name, shape, group) in keys:
            raise PluginError(plugin, f"returned two records named {record.name!r}")
        keys.add((record.name, shape, group))


def find_contested(answers: Mapping[str, Iterable[NamedRecord]]) -> list[Contested]:
    """Find the names that several plugins claim. Load order must not decide between them."""
    claimants: defaultdict[str, set[str]] = defaultdict(set)
    for plugin, records in answers.items():
        for record in records:
            for claim in claims(record):
                claimants[claim].add(plugin)
    return [
        Contested(name, tuple(sorted(rivals)))
        for name, rivals in sorted(claimants.items())
        if len(rivals) > 1
    ]


def claims(record: NamedRecord) -> Iterator[str]:
    """Yield the names that *record* takes. An endpoint takes its method and path as well.

    The name of a command is unique in its group only. Every plugin has a table of its own.
    """
    if isinstance(record, SettingsTable):
        return
    yield f"{record.under} {record.name}" if isinstance(record, Command) else record.name
    if isinstance(record, Endpoint):
        yield f"{record.method} {record.path}"


def reader_of(record: object) -> tuple[Callable[..., Any], Reader] | None:
    """Return the record's callback and the reader of its result. None if any result is valid."""
    match record:
        case Detector(detect=detect):
            return detect, read_detection
        case Invariant(check=check):
            return check, list_of(Finding)
        case Exporter(collect=collect):
            return collect, read_metrics
    return None


def list_of(kind: type[Any]) -> Reader:
    """Return a reader of lists that hold only *kind*."""
    return partial(listed, of=kind)


def read_anything(answer: Any, plugin: str) -> Any:  # noqa: ANN401 - any result is valid
    """Return *answer* unchanged. A generator is listed, because it may raise half way."""
    return listed(answer, plugin, object) if isinstance(answer, Iterator) else answer


def read_detection(answer: object, plugin: str) -> Detection | None:
    """Return a copy of a detector's answer. Raise PluginError unless it is a Detection or None."""
    if answer is None:
        return None
    if type(answer) is Detection:
        return plain_record(answer, Detection)
    raise PluginError(plugin, f"returned {shown(answer)}, which is no Detection")


def read_metrics(answer: object, plugin: str) -> list[Metric]:
    """Return copies of an exporter's metrics. Raise PluginError for a wrong value."""
    metrics = listed(answer, plugin, Metric)
    for metric in metrics:
        for sample in metric.samples:
            _refuse_misfit(metric, sample, plugin)
    return metrics


def _refuse_misfit(metric: Metric, sample: object, plugin: str) -> None:
    if not isinstance(sample, MetricSample):
        raise PluginError(plugin, f"returned {shown(sample)}, which is no MetricSample")
    labels = [part for pair in sample.labels.items() for part in pair]
    if not all(isinstance(part, str) for part in labels):
        raise PluginError(plugin, f"labels {metric.name} with what is no string")
    if not isinstance(sample.value, int | float | Histogram):
        raise PluginError(plugin, f"gives {metric.name} the value {shown(sample.value)}")
