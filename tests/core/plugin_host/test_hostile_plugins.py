"""Every hostility of ``hostility.py`` at every hook, beside two plugins that are well."""

import subprocess
import sys
import threading
import time
from enum import Enum

import attrs
import pytest
from attrs import frozen
from structlog.testing import capture_logs

from temper_core import (
    Command,
    Detection,
    Detector,
    Endpoint,
    Exporter,
    Finding,
    Instrument,
    Invariant,
    Metric,
    MetricFamily,
    MetricSample,
    PluginError,
    PodSource,
    SettingsTable,
    TemperError,
    ThreadGroup,
    WorkloadProfile,
    hookimpl,
)
from temper_core.plugin_host import RECORDS, PluginHost
from temper_core.plugin_host.plain_errors import LONGEST_REASON
from temper_core.settings.models import PluginHostSettings, Settings
from temper_core.testing import make_pod, make_snapshot
from tests.core.plugin_host import hostility
from tests.core.plugin_host.hostility import ANSWERS, ERRORS, TEXTS, VALUES
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*gc_callback:pytest.PytestUnraisableExceptionWarning"
)


@frozen
class Model:
    age: int = 3


def profile(text):
    return WorkloadProfile(text, (ThreadGroup("rest"),), description=text)


def endpoint(text, path="/odd"):
    return Endpoint(text, "GET", path, text, print, parameters={text: text})


RECORD_OF = {
    "temper_profiles": profile,
    "temper_detectors": lambda text: Detector(text, print),
    "temper_invariants": lambda text: Invariant(text, print, why=text),
    "temper_exporters": lambda text: Exporter(text, print),
    "temper_pod_sources": lambda text: PodSource(text, print, text),
    "temper_instruments": lambda text: Instrument(text, print),
    "temper_commands": lambda text: Command(text, text, print),
    "temper_endpoints": endpoint,
    "temper_settings": lambda _: SettingsTable(Model),
    "temper_metrics": lambda text: MetricFamily("temper_odd", text, labels=(text,)),
}
WELL = {
    **RECORD_OF,
    "temper_endpoints": lambda name: endpoint(name, f"/{name}"),
    "temper_metrics": lambda name: MetricFamily(f"temper_{name}", "It is well."),
}
PLUGIN_ERRORS = "temper_core.plugin_host.hosted_plugin"
LEADING, HOSTILE, TRAILING = "early", "hostile", "late"


def plugin_with(hook, function):
    plugin = type("Plugin", (), {})()
    setattr(plugin, hook, hookimpl(lambda: function()))  # noqa: PLW0108 - it may be a class
    return plugin


def steady(hook, name):
    return plugin_with(hook, lambda: [WELL[hook](name)])


@pytest.fixture
def hosting():
    """Return a host with a hostile plugin between two that are well."""

    def build(hook, function):
        host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=0.5)))
        host.add(steady(hook, LEADING), LEADING)
        host.add(plugin_with(hook, function), HOSTILE)
        host.add(steady(hook, TRAILING), TRAILING)
        return host

    return build


@pytest.fixture(autouse=True)
def _nothing_of_it_runs_elsewhere():
    limit, stack = sys.getrecursionlimit(), threading.stack_size()
    hostility.OUTSIDE.clear()
    yield
    assert hostility.OUTSIDE == []
    assert (sys.getrecursionlimit(), threading.stack_size()) == (limit, stack)


def assert_well(host, hook):
    """Fail unless the two others answer, and the hostile plugin is plain or named in one line."""
    begun = time.monotonic()
    with capture_logs() as logs:
        found = host.gather(hook, RECORDS[hook])
    by_plugin = {contribution.plugin: contribution.record for contribution in found}
    states = {state.name: state for state in host.states()}

    assert time.monotonic() - begun < PATIENCE_S
    assert {LEADING, TRAILING} <= set(by_plugin)
    assert states[LEADING].state == states[TRAILING].state == "active"
    assert all(set(entry) <= {"event", "log_level", "plugin", "reason", "during"} for entry in logs)
    if states[HOSTILE].state == "set_aside":
        assert_one_line(states[HOSTILE].failure)
    for record in by_plugin.values():
        assert_plain(record)
    return states[HOSTILE]


def assert_one_line(reason):
    assert type(reason) is str
    assert reason.isprintable()
    assert 0 < len(reason) <= LONGEST_REASON + 1


def assert_plain(value):
    kind = type(value)
    if attrs.has(kind):
        assert kind.__module__.startswith("temper_core.records.")
        for each in attrs.fields(kind):
            assert_plain(getattr(value, each.name))
    elif kind in (tuple, list):
        for item in value:
            assert_plain(item)
    elif kind is dict:
        for item in (*value, *value.values()):
            assert_plain(item)
    else:
        is_plain = kind in (str, int, float, bool, bytes, type(None)) or isinstance(value, Enum)
        assert is_plain or callable(value), kind


def raising(make):
    def implementation():
        raise make()

    return implementation


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("hook", RECORDS)
def test_an_exception_sets_its_plugin_aside_by_a_line_and_nothing_else(hosting, hook, kind):
    host = hosting(hook, raising(ERRORS[kind]))

    assert assert_well(host, hook).state == "set_aside"


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("hook", RECORDS)
def test_a_text_becomes_plain_or_sets_its_plugin_aside(hosting, hook, kind):
    host = hosting(hook, lambda: [RECORD_OF[hook](TEXTS[kind]())])

    assert_well(host, hook)


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("hook", RECORDS)
def test_an_answer_harms_its_plugin_only(hosting, hook, kind):
    host = hosting(hook, ANSWERS[kind])

    assert_well(host, hook)


def detector(it):
    return Detector("odd", lambda _: Detection(it(), 1.0, it()))


def invariant(finding):
    return lambda it: Invariant("odd", lambda _: [finding(it())], why="")


def exporter(samples):
    return lambda it: Exporter("odd", lambda _: [Metric("temper_odd", "Odd.", samples(it()))])


CALLBACKS = {
    "detection": ("temper_detectors", detector, "detect"),
    "finding": ("temper_invariants", invariant(lambda it: Finding(it, it, it, {it: it})), "check"),
    "evidence": ("temper_invariants", invariant(lambda it: Finding("", "", "", it)), "check"),
    "samples": ("temper_exporters", exporter(lambda it: it), "collect"),
    "label": ("temper_exporters", exporter(lambda it: [MetricSample(1, {"odd": it})]), "collect"),
    "labels": ("temper_exporters", exporter(lambda it: [MetricSample(1, it)]), "collect"),
    "value": ("temper_exporters", exporter(lambda it: [MetricSample(it)]), "collect"),
}


def called(host, callback, make):
    """Call what the hostile plugin contributed as the agent does. Return its plain result."""
    hook, record, name = CALLBACKS[callback]
    host.add(plugin_with(hook, lambda: [record(make)]), HOSTILE)
    host.add(steady(hook, TRAILING), TRAILING)
    function = getattr(host.gather(hook, RECORDS[hook])[0].record, name)
    given = make_pod() if name == "detect" else make_snapshot()
    return host.call(HOSTILE, function, given, part="odd part")


@pytest.mark.parametrize("kind", TEXTS | VALUES)
@pytest.mark.parametrize("callback", CALLBACKS)
def test_what_a_record_returns_becomes_plain_or_fails_by_a_line(callback, kind):
    host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=0.5)))

    with capture_logs():
        try:
            assert_plain(called(host, callback, (TEXTS | VALUES)[kind]))
        except PluginError as refused:
            assert_one_line(refused.reason)


@pytest.mark.parametrize("callback", ["samples", "labels", "value"])
def test_a_list_that_repeats_a_list_is_not_copied_without_end(callback):
    host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=PATIENCE_S)))

    with capture_logs(), pytest.raises(PluginError, match="items in a list, or 1000000 in all"):
        called(host, callback, hostility.nested)


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_that_the_contract_allows_arrives_as_one_of_the_cores_own(kind):
    host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=0.5)))
    host.add(steady("temper_detectors", HOSTILE), HOSTILE)

    with capture_logs(), pytest.raises(TemperError) as caught:
        host.call(HOSTILE, raising(ERRORS[kind]), allows=(TemperError,))

    assert type(caught.value).__module__ in ("temper_core.errors", PLUGIN_ERRORS)
    assert type(str(caught.value)) is str


def test_the_cause_of_a_failure_names_where_it_was_raised():
    host = PluginHost()
    host.add(steady("temper_detectors", HOSTILE), HOSTILE)

    with capture_logs(), pytest.raises(PluginError) as caught:
        host.call(HOSTILE, raising(lambda: ValueError("odd")))

    assert str(caught.value.__cause__).endswith("in implementation\nValueError: odd")
    assert caught.value.__cause__.__cause__ is None


RECURSION = """
import sys
from temper_core import Invariant, hookimpl
from temper_core.plugin_host import PluginHost

def deep(*_):
    return sorted([2, 1], key=deep)

class Plugin:
    @hookimpl
    def temper_invariants(self):
        sys.setrecursionlimit(5_000)
        deep()

host = PluginHost()
host.add(Plugin(), "deep")
host.gather("temper_invariants", Invariant)
print(host.states()[0].failure)
"""


def test_recursion_through_c_at_the_largest_limit_does_not_end_the_process():
    ran = subprocess.run(
        [sys.executable, "-c", RECURSION], capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stdout[:15]) == (0, "RecursionError:")


def test_a_thread_that_cannot_be_started_is_a_failure_of_the_call(monkeypatch):
    host = PluginHost()

    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    with pytest.raises(PluginError, match="can't start new thread"):
        host.add(steady("temper_detectors", HOSTILE), HOSTILE)
