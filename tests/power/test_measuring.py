"""Profiles by a real Prometheus, with the series that exporters give it."""

import json
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from temper_core import InputError, MachineError
from temper_plugin_power.commands.power import command
from temper_plugin_power.controller.chosen import asking
from temper_plugin_power.controller.energy_matching import EnergyMatching
from temper_plugin_power.controller.tallies import Tallies
from temper_plugin_power.measuring.measuring import Measured, Pace, measure
from temper_plugin_power.measuring.questions import (
    FAMILIES,
    OPTIONAL,
    THREADS,
    dialect_of,
    questions,
)
from temper_plugin_power.settings.classifier import ClassifierSettings
from temper_plugin_power.workloads.energy import Dialect
from temper_plugin_power.workloads.pods import PodMeasures
from temper_prometheus.answers import Answer, Series
from tests.power.power_series import Exported, a_pod, queries_of, write_pods
from tests.rightsizer.fleet_series import make_blocks, serving

GIB = 2**30
WORKERS = 5000
HIGH, MEDIUM = "cpu-intensity=high (util 90%≥75%)", "cpu-intensity=medium"
GPU = "cpu-bound=mixed (GPU dominant)"
COUNTERS = "counter override: cpu-bound=memory"


@contextmanager
def exporting(folder, fill, **options):
    series = Exported(int(time.time()), **options)
    fill(series)
    make_blocks(folder, [*series.lines, "# EOF"])
    with serving(folder) as address:
        yield address


def power(*arguments):
    done = CliRunner().invoke(command, [*map(str, arguments)], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done


def classified(address, pods, *options):
    done = power("classify", "--pods", pods, "--prometheus", address, *options)
    items = json.loads(done.stdout)["items"]
    return {item["metadata"]["name"].removeprefix("statefulset-"): item["status"] for item in items}


def shop(series):
    series.usage("shop", "busy-0", 0.9, 0.2 * GIB)
    series.usage("shop", "full-0", 0.3, 0.68 * GIB)
    series.usage("shop", "waits-0", 0.5, 0.2 * GIB)
    series.pressure("shop", "waits-0", io=0.31, memory=0.02)
    series.pressure("shop", "busy-0", io=0.01, memory=0.02)
    series.usage("shop", "trains-0", 0.3, 0.2 * GIB)
    series.gpu("shop", "trains-0", 92)
    series.usage("shop", "infers-0", 0.3, 0.2 * GIB)
    series.gpu("shop", "infers-0", 40, honoured=False)
    series.usage("shop", "misses-0", 0.5, 0.2 * GIB)
    series.counted("shop", "misses-0", cycles=1e9, instructions=4.2e8, llc_misses=7.56e6)
    series.temper("shop", "busy-0", waits=0.1, threads=12, busiest=0.6)


SHOP = ("busy", "full", "waits", "trains", "infers", "misses", "silent")


@pytest.fixture(scope="module")
def shop_address(tmp_path_factory):
    with exporting(tmp_path_factory.mktemp("shop"), shop) as address:
        yield address


@pytest.fixture
def shop_pods(tmp_path):
    return write_pods(tmp_path, [a_pod(name) for name in SHOP])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("busy", f"{HIGH}; cpu-bound=compute, cap-sensitivity=high (util 90%>70%)"),
        ("full", f"{MEDIUM} (util 30%); cpu-bound=memory (mem-pressure 68%>50%)"),
        ("waits", f"{MEDIUM} (util 50%); psi override: cpu-bound=io (io-pressure 31%≥20%)"),
        ("trains", f"{MEDIUM} (util 30%); {GPU}; gpu-intensity=high (util 92%≥70%)"),
        ("infers", f"{MEDIUM} (util 30%); gpu-intensity=medium (util 40%)"),
        ("misses", f"{MEDIUM} (util 50%); {COUNTERS} (ipc 0.42<0.70, llc-mpki 18.0≥10.0)"),
        ("silent", "hints only (no metrics available)"),
    ],
)
def test_the_series_of_exporters_decide(shop_address, shop_pods, name, reason):
    assert classified(shop_address, shop_pods)[name]["classificationReason"] == reason


def test_what_agents_say_of_threads_is_evidence(shop_address, shop_pods):
    evidence = classified(shop_address, shop_pods)["busy"]["evidence"]

    assert evidence["runQueueWaitPct"] == pytest.approx(10, abs=0.1)
    assert evidence["threads"] == 12
    assert evidence["busiestThreadPct"] == pytest.approx(66.7, abs=0.1)
    assert evidence["dialect"] == "none"


def kepler(series, *, old=False, new=False, label="container_namespace"):
    """Two pods of different nature, whose zones have one ratio in the new dialect."""
    for name, package, dram in (("adds", 20, 2), ("copies", 12, 10)):
        cpus, held = (0.9, 0.2 * GIB) if name == "adds" else (0.55, 0.6 * GIB)
        series.usage("shop", f"{name}-0", cpus, held)
        if old:
            series.old_kepler("shop", f"{name}-0", package=package, dram=dram, label=label)
        if new:
            series.new_kepler("shop", f"{name}-0", package=package, dram=package / 10)


@pytest.mark.parametrize(
    ("exported", "options", "dialect", "bound"),
    [
        ({"old": True}, (), "kepler-0.9", "compute"),
        ({"old": True, "label": "namespace"}, (), "kepler-0.9", "compute"),
        ({"new": True}, (), "kepler-0.10", "unknown"),
        ({"old": True, "new": True}, (), "kepler-0.9", "compute"),
        ({"old": True, "new": True}, ("--energy", "kepler-0.10"), "kepler-0.10", "unknown"),
        ({"old": True, "new": True}, ("--energy", "off"), "none", "none"),
    ],
)
def test_the_dialect_of_kepler_is_found(tmp_path, exported, options, dialect, bound):
    pods = write_pods(tmp_path, [a_pod("adds"), a_pod("copies")])

    with exporting(tmp_path, lambda series: kepler(series, **exported)) as address:
        profiles = classified(address, pods, *options)

    assert profiles["adds"]["evidence"]["dialect"] == dialect
    assert profiles["adds"]["evidence"]["energyBound"] == bound
    watts = {"none": None, "kepler-0.10": 20}.get(dialect, 20)
    assert profiles["adds"]["evidence"].get("packageWatts") == pytest.approx(watts)
    if dialect == "kepler-0.10":
        for profile in profiles.values():
            assert "kepler override" not in profile["classificationReason"]
            assert "energy: cpu-bound unknown" in profile["classificationReason"]


@pytest.mark.parametrize(
    ("exported", "says", "code"),
    [({"old": True}, True, 0), ({"new": True}, False, 1), ({}, False, 1)],
)
def test_the_dialect_is_told(tmp_path, exported, says, code):
    pods = write_pods(tmp_path, [a_pod("adds")])

    with exporting(tmp_path, lambda series: kepler(series, **exported)) as address:
        done = power("dialect", "--prometheus", address, "--pods", pods, "-o", "json")
        text = power("dialect", "--prometheus", address, "--pods", pods)

    told = json.loads(done.stdout)
    assert (told["says"], done.return_value) == (says, code)
    assert told["unknownPods"] == (["shop/copies-0"] if exported else [])
    assert told["dialect"] in text.stdout


def test_labels_that_name_no_pod_are_told(tmp_path):
    """The energy is there, but a relabelling has taken its names of pods away."""
    pods = write_pods(tmp_path, [a_pod("adds")])

    def fill(series):
        name = "kepler_container_package_joules_total"
        series.counter(name, 5, container_id="a", ns="shop", workload="adds-0")

    with exporting(tmp_path, fill) as address:
        done = power("dialect", "--prometheus", address, "--pods", pods, "-o", "json")
        text = power("dialect", "--prometheus", address, "--pods", pods)
    told = json.loads(done.stdout)

    assert (told["podsWithEnergy"], done.return_value) == (0, 1)
    assert told["labels"] == ["container_id", "ns", "workload"]
    assert "labels: container_id, ns, workload" in text.stdout


@pytest.mark.parametrize(
    ("labels", "energetic", "pods", "warned"),
    [
        (("ns",), (), {"shop/adds-0"}, 1),
        (("pod_name",), ("other/x",), {"shop/adds-0"}, 1),
        (("pod_name",), ("shop/adds-0",), {"shop/adds-0"}, 0),
        (("ns",), (), set(), 0),
        ((), (), {"shop/adds-0"}, 0),
    ],
)
def test_energy_of_no_known_pod_is_warned_of_once(labels, energetic, pods, warned):
    measures = {key: PodMeasures(kepler_package_rate=1.0) for key in energetic}
    measured = Measured(measures, Dialect.OLD, frozenset(), labels)
    matching = EnergyMatching()

    with capture_logs() as logs:
        matching.look(measured, pods)
        matching.look(measured, pods)

    assert [each["event"] for each in logs] == ["energy_of_no_pod"] * warned
    for each in logs:
        assert (each["labels"], each["pods_seen"]) == (list(labels), list(energetic))


def crowd(series):
    """Every exporter at once, about many pods."""
    for number in range(WORKERS):
        pod = f"w{number}-0"
        series.usage("shop", pod, 0.9, 0.2 * GIB)
        series.pressure("shop", pod, io=0.01, memory=0.01)
        series.old_kepler("shop", pod, package=10, dram=1 + number % 7, gpu=3)
        series.new_kepler("shop", pod, package=10, dram=1, gpu=3)
        series.gpu("shop", pod, 30)
        series.temper("shop", pod, waits=0.1, threads=3, busiest=0.3)
        series.counted("shop", pod, cycles=1e9, instructions=1e9, llc_misses=1e6)


def test_five_thousand_pods_take_at_most_twenty_queries(tmp_path):
    pods = write_pods(tmp_path, [a_pod(f"w{number}") for number in range(WORKERS)])

    with exporting(tmp_path, crowd, samples=3) as address:
        before = queries_of(address)
        profiles = classified(address, pods)
        asked = queries_of(address) - before

    assert len(profiles) == WORKERS
    assert {profile["confidence"] for profile in profiles.values()} == {0.7}
    assert 0 < asked <= 20


@pytest.mark.parametrize("dialect", Dialect)
def test_no_dialect_takes_more_than_twenty_queries(dialect):
    asked = list(questions(frozenset(OPTIONAL), dialect, 600))

    assert len(asked) + 2 <= 20  # with the families and the labels of energy
    assert len({each.measure for each in asked}) == len(asked)


def test_without_a_family_nothing_is_asked_about_it():
    asked = {each.measure for each in questions(frozenset(), Dialect.OLD, 600)}

    assert asked == {"cpu_rate", "mem_working_set"}


def test_a_known_dialect_needs_no_family():
    assert dialect_of(frozenset(), "kepler-0.9") is Dialect.OLD


class Failing:
    """A server whose first answers fail."""

    def __init__(self, failures, error=None):
        self.failures, self.asked = failures, 0
        self.error = error or MachineError("away")

    def at(self, _query, _moment):
        self.asked += 1
        if self.asked <= self.failures:
            raise self.error
        return Answer([])

    def damaged(self, error):
        return MachineError(str(error))


@pytest.mark.parametrize(("failures", "asked"), [(0, 3), (1, 4), (2, 5)])
def test_a_query_that_fails_is_repeated_after_a_growing_pause(failures, asked):
    server, pauses = Failing(failures), []

    measure(server, 0, pace=Pace(sleep=pauses.append))

    assert server.asked == asked
    assert len(pauses) == failures
    assert pauses == sorted(pauses)


def test_a_server_that_keeps_failing_is_left_alone():
    server = Failing(99)

    with pytest.raises(MachineError, match="away"):
        measure(server, 0, pace=Pace(sleep=lambda _: None))

    assert server.asked == 3


def test_a_query_that_is_refused_is_not_repeated():
    server = Failing(99, InputError("refused"))

    with pytest.raises(InputError, match="refused"):
        measure(server, 0, pace=Pace(sleep=lambda _: None))

    assert server.asked == 1


def test_all_queries_together_have_a_deadline():
    times = iter(range(0, 1000, 10))
    server = Failing(0)

    with pytest.raises(MachineError, match="do not end within 30 s"):
        measure(server, 0, pace=Pace(sleep=lambda _: None, clock=lambda: next(times)))

    assert server.asked == 1


def test_series_that_a_tenant_adds_to_a_pod_fail_no_cycle():
    """Two targets of a tenant say of one pod what is beyond any use together."""

    class Claimed(Failing):
        def at(self, query, _moment):
            if query == FAMILIES:
                return Answer([Series({"__name__": THREADS}, [[0, "1"]])])
            about = {"exported_namespace": "shop", "exported_pod": "web-0", "namespace": "t"}
            usual = Series({"exported_namespace": "shop", "exported_pod": "web-1"}, [[0, "3"]])
            both = [Series({**about, "pod": pod}, [[0, "1e18"]]) for pod in ("a", "b")]
            return Answer([*both, usual] if THREADS in query else [])

    measured = measure(Claimed(0), 0, pace=Pace(sleep=lambda _: None))

    assert {key: each.threads for key, each in measured.measures.items()} == {"shop/web-1": 3.0}


@pytest.mark.parametrize("value", [None, 5, "x"])
def test_a_damaged_sample_fails_the_cycle(value):
    class Damaged(Failing):
        def at(self, _query, _moment):
            return Answer([Series({"namespace": "a", "pod": "b"}, [(0, value)])])

    with pytest.raises(MachineError):
        measure(Damaged(0), 0, pace=Pace(sleep=lambda _: None))


@pytest.mark.parametrize(
    "arguments",
    [
        ["classify", "--window", "5m", "--pods", "a"],
        ["classify", "--prometheus", "http://a", "--metrics", "b"],
        ["classify", "--prometheus", "http://a", "--window", "59s"],
        ["dialect"],
    ],
)
def test_options_that_do_not_fit_are_refused(arguments):
    assert CliRunner().invoke(command, arguments).exit_code == 2


def test_a_hostile_name_of_a_pod_is_shown_without_its_controls(tmp_path):
    pods = write_pods(tmp_path, [a_pod("adds")])

    def fill(series):
        series.old_kepler("shop", "x\x1b]0;owned\x07", package=1, dram=1)

    with exporting(tmp_path, fill) as address:
        done = power("dialect", "--prometheus", address, "--pods", pods)

    assert "owned" in done.stdout
    assert not {"\x1b", "\x07"} & set(done.stdout)


def test_an_answer_that_a_tenant_has_made_large_is_not_read_to_its_end():
    """The operator may have 512 MiB."""

    class Large(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                for _ in range(30):
                    self.wfile.write(b" " * 2**20)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Large) as server:
        threading.Thread(target=server.serve_forever).start()
        settings = ClassifierSettings(prometheus_url=f"http://127.0.0.1:{server.server_port}")
        ask = asking(settings, Tallies())
        with pytest.raises(MachineError, match="more than 24 MiB"):
            ask()
        server.shutdown()
