"""What ``assert_keeps_contract`` finds in instruments and pod sources."""

import warnings

import pytest

from temper_core import (
    Check,
    CheckState,
    Endpoint,
    EventKind,
    Instrument,
    MachineError,
    MetricFamily,
    MetricSample,
    OpenInstrument,
    PluginError,
    PodSource,
    Staleness,
    hookimpl,
)
from temper_core.node import builtin_plugin
from temper_core.testing import assert_keeps_contract, make_pod

WAITS = MetricFamily("temper_lamp_waits", "Waits of pods.", labels=("pod",))


class Lamp(OpenInstrument):
    """An instrument that uses every method."""

    def __init__(self, context):
        self.context = context
        self.calls = []

    def tell(self, snapshot):
        self.calls.append(f"tell {len(snapshot.pods)}")
        self.context.state.write("pods", str(len(snapshot.pods)).encode())
        self.context.record("lamp_lit", "web")
        self.context.request_safe_mode("a drill")

    def section(self, snapshot):
        return {"pods": [pod.pod for pod in snapshot.pods]}

    def endpoints(self):
        yield Endpoint("lamp", "GET", "/lamps/{id}", "A lamp.", self._page)

    def _page(self, request):
        self.calls.append(f"page {request.query['id']}")

    def metrics(self):
        yield WAITS.metric([MetricSample(1.0, {"pod": "web"})])

    def checks(self):
        yield Check("lamp", CheckState.OK, "is lit")

    def events(self):
        yield EventKind("lamp_lit", "The lamp was lit.")

    def close(self):
        self.calls.append("close")


class Instruments:
    """A plugin with one instrument."""

    def __init__(self, opening):
        self.opened = []
        self._opening = opening

    def _open(self, context):
        self.opened.append(self._opening(context))
        return self.opened[-1]

    @hookimpl
    def temper_instruments(self):
        return [Instrument("lamp", self._open)]

    @hookimpl
    def temper_metrics(self):
        return [WAITS]


class Source:
    """A pod source with one pod, and all optional methods."""

    def __init__(self, _context):
        self.calls = []

    def pods(self):
        self.calls.append("pods")
        return [make_pod()]

    def fileno(self):
        return -1

    def again_in_s(self):
        return 5.0

    def executed(self, news):
        self.calls.append(f"executed {len(news.executions)}")

    def stale(self):
        return Staleness(1.0, "the server does not answer")

    def close(self):
        self.calls.append("close")


class Sources:
    """A plugin with one pod source."""

    def __init__(self, opening):
        self.opened = []
        self._opening = opening

    def _open(self, context):
        self.opened.append(self._opening(context))
        return self.opened[-1]

    @hookimpl
    def temper_pod_sources(self):
        return [PodSource("made", self._open)]


def test_an_instrument_is_opened_asked_for_two_windows_and_closed():
    plugin = Instruments(Lamp)

    assert_keeps_contract(plugin)

    [lamp] = plugin.opened
    assert lamp.calls == ["tell 0", "tell 1", "page unknown", "page unknown", "close"]


@pytest.mark.parametrize(
    ("method", "returned", "problem"),
    [
        ("tell", ZeroDivisionError(), "ZeroDivisionError"),
        ("section", ["a list"], "a section is a mapping, not list"),
        ("section", {"pods": "x" * 300_000}, "its section is larger than 262144 bytes"),
        ("defects", [1], "returned 1, which is no str"),
        ("endpoints", ["/lamp"], "returned '/lamp', which is no Endpoint"),
        ("metrics", [WAITS], "which is no Metric"),
        ("metrics", [WAITS.metric([MetricSample(1.0, {"node": "a"})])], "labels that are not"),
        ("checks", [True], "returned True, which is no Check"),
        ("events", [], "'lamp_lit'"),
        ("events", [EventKind("mode_changed", "The lamp.")], "is a kind of the agent's own"),
        ("close", OSError("no lamp"), "no lamp"),
    ],
)
def test_a_method_of_an_instrument_that_breaks_the_contract_is_named(method, returned, problem):
    class Broken(Lamp):
        pass

    def answer(_self, *_):
        if isinstance(returned, Exception):
            raise returned
        return returned

    setattr(Broken, method, answer)

    with pytest.raises((AssertionError, PluginError), match=problem):
        assert_keeps_contract(Instruments(Broken))


def test_an_endpoint_of_an_instrument_answers_with_what_can_be_sent():
    class Broken(Lamp):
        def endpoints(self):
            return [Endpoint("lamp", "GET", "/lamp", "The lamp.", lambda _: b"raw")]

    with pytest.raises(PluginError, match="returned a bytes; allowed is an Answer, or JSON"):
        assert_keeps_contract(Instruments(Broken))


def test_an_instrument_has_a_method_that_closes_it():
    with pytest.raises(AssertionError, match="which has no method 'close'"):
        assert_keeps_contract(Instruments(lambda _context: "a lamp"))


def test_a_pod_source_is_opened_asked_and_closed():
    plugin = Sources(Source)

    assert_keeps_contract(plugin)

    [source] = plugin.opened
    assert source.calls == ["pods", "executed 1"] * 2 + ["close"]


@pytest.mark.parametrize(
    ("method", "returned", "problem"),
    [
        ("pods", ["web"], "returned 'web', which is no Pod"),
        ("pods", [make_pod("a", uid="1"), make_pod("b", uid="1")], "have one uid"),
        ("fileno", "a file", "invalid literal for int"),
        ("again_in_s", "soon", "could not convert string to float"),
        ("stale", True, "Staleness"),
        ("executed", ZeroDivisionError(), "ZeroDivisionError"),
        ("close", OSError("no socket"), "no socket"),
    ],
)
def test_a_method_of_a_pod_source_that_breaks_the_contract_is_named(method, returned, problem):
    class Broken(Source):
        pass

    def answer(_self, *_):
        if isinstance(returned, Exception):
            raise returned
        return returned

    setattr(Broken, method, answer)

    with pytest.raises(AssertionError, match=problem):
        assert_keeps_contract(Sources(Broken))


@pytest.mark.parametrize("plugin", [Instruments, Sources])
def test_what_cannot_be_opened_on_this_machine_is_left_out_with_a_warning(plugin):
    def opening(_context):
        raise MachineError("no lamp is connected")

    with pytest.warns(UserWarning, match="was not tried: .*no lamp is connected"):
        assert_keeps_contract(plugin(opening))


def test_what_cannot_be_opened_for_another_reason_is_a_failure():
    def opening(_context):
        raise ValueError("no lamp")

    with pytest.raises((AssertionError, PluginError), match="no lamp"):
        assert_keeps_contract(Instruments(opening))
    with pytest.raises((AssertionError, PluginError), match="no lamp"):
        assert_keeps_contract(Sources(opening))


def test_the_cores_own_pod_sources_keep_the_contract():
    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always")
        assert_keeps_contract(builtin_plugin, "core")

    assert [str(each.message).partition(" was ")[0] for each in left_out] == ["pod source file"]
