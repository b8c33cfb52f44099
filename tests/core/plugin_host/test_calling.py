import gc
import json
import re
import sys
import threading
import time
from types import ModuleType

import pytest
from structlog.testing import capture_logs

from temper_core import (
    Detection,
    Detector,
    Exporter,
    Finding,
    InputError,
    Invariant,
    MachineError,
    Metric,
    MetricSample,
    PluginError,
    hookimpl,
)
from temper_core.plugin_host import PluginHost, hosted_plugin
from temper_core.settings.models import PluginHostSettings, Settings
from temper_core.testing import make_pod, make_snapshot
from tests.patience import PATIENCE_S

# A thread that is told to end may just be inside hypothesis' own hook of the garbage collector,
# which cannot raise; it is told again, and the tests look that it goes.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*gc_callback:pytest.PytestUnraisableExceptionWarning"
)


class Plugin:
    """Contributes what it is made with."""

    def __init__(self, *, check=None, detect=None, collect=None):
        self.check, self.detect, self.collect = check, detect, collect

    @hookimpl
    def temper_invariants(self):
        return [Invariant("held", self.check, why="")] if self.check else []

    @hookimpl
    def temper_detectors(self):
        return [Detector("seen", self.detect)] if self.detect else []

    @hookimpl
    def temper_exporters(self):
        return [Exporter("shown", self.collect)] if self.collect else []


def fail():
    raise ZeroDivisionError("as always")


@pytest.fixture
def host():
    host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=0.2)))
    host.add(Plugin(), "called")
    return host


def state_of(host):
    return host.states()[0]


def test_a_call_returns_what_the_function_returned_and_is_accounted_for(host):
    before = state_of(host)

    answer = host.call("called", divmod, 7, 2)

    after = state_of(host)
    assert answer == (3, 1)
    assert after.calls == before.calls + 1
    assert after.time_spent_s > before.time_spent_s


def test_a_generator_comes_as_a_list(host):
    assert host.call("called", lambda: (n for n in range(3))) == [0, 1, 2]


def test_a_generator_that_raises_half_way_is_a_failure_of_the_plugin(host):
    def half_way():
        yield 1
        fail()

    with capture_logs(), pytest.raises(PluginError, match="ZeroDivisionError: as always"):
        host.call("called", half_way)


def test_every_failure_is_counted_and_the_log_stays_bounded(host):
    with capture_logs() as logs:
        for _ in range(20):
            with pytest.raises(PluginError):
                host.call("called", fail)
            host.call("called", int)

    assert host.failures == {"called": 20}
    assert state_of(host).state == "active"
    assert [(entry["event"], entry["plugin"]) for entry in logs] == [
        ("plugin_call_failed", "called")
    ]


def test_three_failures_in_a_row_set_the_plugin_aside(host):
    with capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(PluginError):
                host.call("called", fail)
    with pytest.raises(PluginError, match="is set_aside: ZeroDivisionError: as always"):
        host.call("called", int)

    assert host.failures == {"called": 3}
    assert state_of(host).state == "set_aside"
    assert [entry["event"] for entry in logs] == ["plugin_call_failed", "plugin_set_aside"]


def test_a_call_that_hangs_sets_the_plugin_aside_at_once(host):
    release = threading.Event()

    with capture_logs(), pytest.raises(PluginError, match=r"did not return within 0\.2 s"):
        host.call("called", release.wait)

    release.set()
    assert state_of(host).state == "set_aside"


def waits_in_the_library():
    threading.Event().wait()


def test_a_call_that_hangs_is_named_with_the_line_of_the_plugin_in_which_it_is(host):
    line = waits_in_the_library.__code__.co_firstlineno + 1

    with capture_logs(), pytest.raises(PluginError) as caught:
        host.call("called", waits_in_the_library)

    place = f"test_calling.py:{line} in waits_in_the_library"
    assert caught.value.reason == f"did not return within 0.2 s ({place})"
    assert str(caught.value.__cause__).endswith(" in wait")


@pytest.mark.parametrize(("wanted", "shown"), [("", False), ("1", True)])
def test_a_failure_is_logged_with_its_traceback_on_request(host, monkeypatch, wanted, shown):
    monkeypatch.setenv("TEMPER_TRACEBACK", wanted)

    with capture_logs() as logs, pytest.raises(PluginError):
        host.call("called", json.loads, "{")

    assert logs[0]["reason"].startswith("JSONDecodeError: ")
    assert ("in raw_decode" in logs[0].get("exception", "")) is shown


def test_a_failure_in_the_library_is_named_with_the_line_of_the_plugin(host):
    def reads():
        return json.loads("{")

    with capture_logs(), pytest.raises(PluginError, match=r"\(test_calling\.py:\d+ in reads\)$"):
        host.call("called", reads)


def test_a_python_loop_that_never_ends_is_stopped_when_it_is_left_behind(host):
    threads = []

    def spin():
        threads.append(threading.current_thread())
        while True:
            time.sleep(0.001)

    with capture_logs(), pytest.raises(PluginError):
        host.call("called", spin)

    threads[0].join(PATIENCE_S)
    assert not threads[0].is_alive()


class _LoopsWhenFreed:
    """Python reports and drops what a finalizer raises."""

    def __del__(self):
        while True:
            time.sleep(0.001)


@pytest.mark.filterwarnings("ignore:Exception ignored:pytest.PytestUnraisableExceptionWarning")
def test_a_thread_that_loses_an_interrupt_is_interrupted_again(host):
    threads = []

    def loses_two():
        threads.append(threading.current_thread())
        for _ in range(2):
            _LoopsWhenFreed()
        while True:
            time.sleep(0.001)

    with capture_logs(), pytest.raises(PluginError):
        host.call("called", loses_two)

    threads[0].join(PATIENCE_S)
    assert not threads[0].is_alive()


def test_a_part_that_hangs_is_set_aside_alone_and_says_why(host):
    release = threading.Event()

    with capture_logs() as logs, pytest.raises(PluginError, match=r"did not return within 0\.2 s"):
        host.call("called", release.wait, part="exporter slow")
    with pytest.raises(PluginError, match=r"exporter slow is set aside: did not return"):
        host.call("called", int, part="exporter slow")
    others = [host.call("called", int, part="detector quick"), host.call("called", int)]

    release.set()
    assert others == [0, 0]
    assert state_of(host).state == "degraded"
    assert state_of(host).lost == ("exporter slow: did not return within 0.2 s",)
    assert [entry["event"] for entry in logs] == ["plugin_part_set_aside"]


def test_a_part_that_a_client_makes_hang_is_called_again_after_the_call_and_a_pause(
    host, monkeypatch
):
    """Clients share the interpreter with the plugin, so that anybody could take it away."""
    monkeypatch.setattr(hosted_plugin, "PAUSE_S", 0.5)
    release = threading.Event()
    part = "endpoint slow"

    with capture_logs(), pytest.raises(PluginError, match="did not return"):
        host.call("called", release.wait, part=part, is_clients=True)
    time.sleep(0.6)
    with pytest.raises(PluginError, match="is set aside"):  # the call still runs
        host.call("called", int, part=part, is_clients=True)
    assert state_of(host).lost
    release.set()

    deadline = time.monotonic() + PATIENCE_S
    while state_of(host).lost and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state_of(host).lost == ()
    assert host.call("called", int, part=part, is_clients=True) == 0


def test_a_pause_is_no_shorter_because_the_call_has_ended(host):
    with capture_logs(), pytest.raises(PluginError, match="did not return"):
        host.call("called", time.sleep, 0.3, part="endpoint slow", is_clients=True)
    time.sleep(0.3)

    with pytest.raises(PluginError, match="is set aside"):
        host.call("called", int, part="endpoint slow", is_clients=True)


def test_failures_in_a_row_are_those_of_one_part(host):
    with capture_logs():
        for _ in range(3):
            with pytest.raises(PluginError):
                host.call("called", fail, part="exporter broken")
            host.call("called", int, part="detector sound")

    assert state_of(host).state == "degraded"
    assert [each.partition(":")[0] for each in state_of(host).lost] == ["exporter broken"]
    assert host.call("called", int, part="detector sound") == 0


def test_what_the_contract_allows_comes_through_and_is_no_failure(host):
    def cannot_tell():
        raise MachineError("the API server does not answer")

    for _ in range(5):
        with pytest.raises(MachineError, match="does not answer"):
            host.call("called", cannot_tell, allows=(MachineError,))

    assert host.failures == {"called": 0}
    assert state_of(host).state == "active"


def test_a_call_may_have_a_longer_deadline_than_the_settings_say(host):
    def slow():
        time.sleep(2 * host.settings.plugin_host.deadline_s)
        return "slow"

    with capture_logs(), pytest.raises(PluginError, match="did not return"):
        host.call("called", slow, part="one")

    assert host.call("called", slow, part="two", deadline_s=PATIENCE_S) == "slow"


def test_a_failure_is_one_line_although_the_log_is_half_imported(host, monkeypatch, capsys):
    """A plugin that was left behind in an import leaves the module without its names."""
    monkeypatch.setitem(sys.modules, "structlog", ModuleType("structlog"))

    with pytest.raises(PluginError):
        host.call("called", lambda: 1 / 0, part="one")

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("temper: plugin 'called': ZeroDivisionError: division by zero (")
    assert re.search(r"\(test_calling.py:\d+ in <lambda>\)$", line)


def test_an_error_of_ours_that_was_not_allowed_is_the_plugins(host):
    def complain():
        raise InputError("no such pod")

    with capture_logs(), pytest.raises(PluginError, match="no such pod") as caught:
        host.call("called", complain)

    assert "in complain" in str(caught.value.__cause__)


def test_the_type_of_each_item_can_be_asked_for(host):
    assert host.call("called", lambda: iter([1, 2]), items=int) == [1, 2]
    with capture_logs(), pytest.raises(PluginError, match="returned 'x', which is no int"):
        host.call("called", lambda: [1, "x"], items=int)


def test_an_error_whose_text_cannot_be_read_is_still_reported(host):
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError

    def fail_mutely():
        raise MuteError

    with capture_logs(), pytest.raises(PluginError, match="MuteError: its message cannot be read"):
        host.call("called", fail_mutely)


def test_a_plugin_nobody_loaded_is_named(host):
    with pytest.raises(PluginError, match="'stranger': is not loaded"):
        host.call("stranger", int)


def test_two_threads_that_call_one_plugin_take_turns():
    host = PluginHost()
    host.add(Plugin(), "called")
    inside, overlaps = [], []

    def enter():
        inside.append(1)
        overlaps.append(len(inside))
        time.sleep(0.001)
        inside.pop()

    threads = [
        threading.Thread(target=lambda: [host.call("called", enter) for _ in range(20)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert overlaps == [1] * 80
    assert state_of(host).calls == 81  # the first admitted it


def test_a_plugin_that_is_called_through_itself_does_not_wait_for_itself(host):
    assert host.call("called", lambda: host.call("called", lambda: "inner")) == "inner"


def test_a_host_that_is_dropped_leaves_no_thread():
    host = PluginHost()
    host.add(Plugin(), "dropped")
    worker = next(t for t in threading.enumerate() if t.name == "plugin-dropped")

    del host
    gc.collect()
    worker.join(timeout=PATIENCE_S)

    assert not worker.is_alive()


NONSENSE = {
    "detector": ("temper_detectors", Detector, {"detect": lambda pod: pod.name}),
    "invariant": ("temper_invariants", Invariant, {"check": lambda _: ["a finding"]}),
    "exporter": ("temper_exporters", Exporter, {"collect": lambda _: [1]}),
    "value": (
        "temper_exporters",
        Exporter,
        {"collect": lambda _: [Metric("temper_x", "", [MetricSample("high")])]},
    ),
    "label": (
        "temper_exporters",
        Exporter,
        {"collect": lambda _: [Metric("temper_x", "", [MetricSample(1.0, {"cpu": 3})])]},
    ),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_what_a_record_returns_is_judged_where_it_is_called(kind):
    hook, record, given = NONSENSE[kind]
    host = PluginHost()
    host.add(Plugin(**given), "odd")
    [contribution] = host.gather(hook, record)
    [function] = given
    sample = make_pod() if record is Detector else make_snapshot()

    with (
        capture_logs(),
        pytest.raises(PluginError, match=r" \(test_calling\.py:\d+ in <lambda>\)$"),
    ):
        host.call("odd", getattr(contribution.record, function), sample)

    assert host.failures == {"odd": 1}


def test_what_a_record_was_asked_for_comes_back_whole():
    def check(_):
        yield Finding("cpu 1", "is hot", "cool it")

    def collect(_):
        yield Metric("temper_x", "X.", (MetricSample(n) for n in (1, 2.5)))

    host = PluginHost()
    host.add(Plugin(check=check, collect=collect, detect=lambda _: Detection("db", 1, "")), "good")
    [detector] = host.gather("temper_detectors", Detector)
    [invariant] = host.gather("temper_invariants", Invariant)
    [exporter] = host.gather("temper_exporters", Exporter)

    [metric] = host.call("good", exporter.record.collect, make_snapshot())

    assert host.call("good", detector.record.detect, make_pod()) == Detection("db", 1, "")
    assert host.call("good", invariant.record.check, make_snapshot()) == list(check(None))
    assert metric.samples == (MetricSample(1), MetricSample(2.5))


def test_what_ends_outside_of_a_call_is_counted_and_the_third_failure_sets_the_part_aside(host):
    host.add(Plugin(check=lambda _: ()), "shop")

    host.note_end("shop", "stream", "raised")
    host.note_end("shop", "stream", "raised")
    host.note_end("shop", "stream")
    for _ in range(2):
        host.note_end("shop", "stream", "raised")
    before = host.why_lost("shop", "stream")
    host.note_end("shop", "stream", "raised again")

    assert before == ""
    assert host.why_lost("shop", "stream") == "raised again"
    assert host.failures["shop"] == 5


def test_what_hangs_outside_of_a_call_is_set_aside_at_once(host):
    host.add(Plugin(check=lambda _: ()), "shop")

    host.note_end("shop", "stream", "sent nothing", is_hung=True)

    assert host.why_lost("shop", "stream") == "sent nothing"
    assert host.why_lost("shop", "another") == ""
