"""The dashboard as a plugin: its files, its figures and its stream."""

import json
import math
import re
import threading

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

import temper_plugin_dashboard
from temper_core import (
    Assignment,
    InputError,
    LayerPlan,
    Mode,
    Request,
    Status,
    Tier,
    fit_settings,
    parse_profile,
)
from temper_core.records.profiles import LoadedProfile
from temper_core.testing import (
    MadeContext,
    assert_keeps_contract,
    make_machine,
    make_pod,
    make_snapshot,
    make_thread,
)
from temper_plugin_dashboard.history import MOST_POINTS
from temper_plugin_dashboard.instrument import ASSETS, Dashboard
from temper_plugin_dashboard.options import Options
from temper_plugin_dashboard.profiles_in_force import profiles_in_force

MEASURED = """
schema_version = 1
id = "m"
[[thread_groups]]
name = "rest"
[evidence]
effect = "better"
kernel = "6.18"
engine = "1.1.4"
command = "./bench"
figures = [
    { measure = "p99", tiers_only = 10.0, profile = 8.0, spread = 1.0, unit = "ms" },
    { measure = "rate", tiers_only = 10.0, profile = 8.0, spread = 1.0, better = "higher" },
]
"""
REFERENCE = re.compile(r"""(?:href|src|from|import)\s*=?\s*["']([^"'#$]+)["']""")
ELSEWHERE = re.compile(r"(?:https?:)?//[a-z]")


@pytest.fixture
def dashboard():
    dashboard = Dashboard(Options(), MadeContext().lookup)
    yield dashboard
    dashboard.close()


def ask(dashboard, name, **query):
    (endpoint,) = (each for each in dashboard.endpoints() if each.name == name)
    return endpoint.answer(Request(query))


def own_files():
    return [path for path in ASSETS.rglob("*") if path.suffix in {".js", ".html", ".css"}]


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_dashboard, "dashboard")


def test_a_profile_is_shown_with_its_evidence_and_all_of_its_pods():
    loaded = LoadedProfile(parse_profile(MEASURED, "m"), source="m.toml", expired="2026-01-01")
    pods = [make_pod("b"), make_pod("a"), make_pod("c")]
    given = [loaded, loaded, None]
    assignments = tuple(
        Assignment(pod, Tier.HIGH, "", profile) for pod, profile in zip(pods, given, strict=True)
    )
    plan = LayerPlan(make_machine(), (), assignments)

    (shown,) = profiles_in_force(plan)

    assert shown["pods"] == ["default/a", "default/b"]
    assert (shown["id"], shown["source"], shown["expired"]) == ("m", "m.toml", "2026-01-01")
    assert shown["evidence"]["effect"] == "better"
    assert [figure["effect"] for figure in shown["evidence"]["figures"]] == ["better", "worse"]
    assert json.dumps(shown)
    assert profiles_in_force(None) == []


def test_the_setting_hides_actions():
    (instrument,) = temper_plugin_dashboard.temper_instruments({"actions": False})

    dashboard = instrument.open(MadeContext())

    assert ask(dashboard, "get-dashboard-settings") == {"actions": False, "perfetto": ""}


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://ui.perfetto.dev",
        "http://perfetto.tools.internal:8080/ui/",
        "http://[fd00::1]:80",
    ],
)
def test_an_address_of_a_perfetto_is_taken(address):
    assert fit_settings({"perfetto": address}, Options, plugin="dashboard").perfetto == address


@pytest.mark.parametrize(
    "address",
    [
        "ui.perfetto.dev",
        "javascript:alert(1)",
        "https://",
        "https://user@ui.perfetto.dev",
        "https://ui.perfetto.dev/#!/?url=https://elsewhere.example",
        "https://ui.perfetto.dev\n",
        "https://" + "a" * 300,
        1,
    ],
)
def test_what_is_no_address_of_a_perfetto_is_refused_by_name(address):
    with pytest.raises(InputError, match=r"perfetto: (must be (an address|a str)|Length of)"):
        fit_settings({"perfetto": address}, Options, plugin="dashboard")


@pytest.mark.parametrize(
    "name", ["../options.py", "..", "", "app.js/", "vendor", "views/../app.js", "/etc/passwd"]
)
def test_only_the_files_of_the_page_are_served(dashboard, name):
    assert ask(dashboard, "get-dashboard-file", file=name).status == 404


def test_every_file_that_a_file_names_is_there():
    names = {path.relative_to(ASSETS).as_posix() for path in ASSETS.rglob("*")}
    missing = []
    for path in own_files():
        if path.parent.name == "vendor":
            continue
        for reference in REFERENCE.findall(path.read_text()):
            if not reference.endswith((".js", ".css", ".svg")):
                continue
            base = ASSETS if path.suffix == ".html" else path.parent
            target = (base / reference.removeprefix("dashboard/files/")).resolve()
            if target.relative_to(ASSETS).as_posix() not in names:
                missing.append((path.name, reference))

    assert missing == []


def test_nothing_is_loaded_from_elsewhere():
    loaded = [
        (path.name, reference)
        for path in own_files()
        for reference in REFERENCE.findall(path.read_text())
        if ELSEWHERE.match(reference)
    ]

    assert loaded == []


def test_libraries_come_with_their_licences():
    libraries = {path.name for path in (ASSETS / "vendor").glob("*.js")}

    assert libraries == {"htm-preact.js", "uplot.js"}
    for name in ("htm", "preact", "uplot"):
        assert len((ASSETS / "vendor" / f"LICENSE-{name}").read_text()) > 500


def test_the_history_has_a_point_for_each_window_and_a_bound(dashboard):
    busy = make_snapshot(threads=[make_thread(cpu_used=0.75), make_thread(cpu_used=0.5)])
    dashboard.tell(evolve(busy, window_s=0.0))
    for number in range(MOST_POINTS + 10):
        dashboard.tell(evolve(busy, at=float(number)))

    history = ask(dashboard, "get-dashboard-history")

    assert history["at"][0] == 10.0
    assert {len(column) for column in history.values()} == {MOST_POINTS}
    assert history["cpu_used"][-1] == 1.25
    assert json.loads(json.dumps(history)) == history


def test_a_history_since_a_moment_has_later_points_only(dashboard):
    for at in (1.0, 2.0, 3.0):
        dashboard.tell(evolve(make_snapshot(), at=at))

    assert ask(dashboard, "get-dashboard-history", since="1.5")["at"] == [2.0, 3.0]
    assert ask(dashboard, "get-dashboard-history", since="3")["at"] == []


@given(st.floats(0, 1e12))
def test_a_finite_moment_is_taken(moment):
    dashboard = Dashboard(Options(), MadeContext().lookup)

    assert ask(dashboard, "get-dashboard-history", since=str(moment))["at"] == []


@given(st.text(max_size=40).filter(lambda text: not is_finite(text)))
@example("nan")
@example("inf")
@example("9" * 31)
def test_any_other_moment_is_refused_in_one_line(text):
    with pytest.raises(InputError, match="since must be a number of seconds") as refused:
        ask(Dashboard(Options(), MadeContext().lookup), "get-dashboard-history", since=text)

    assert len(str(refused.value)) < 150


def is_finite(text):
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def test_a_history_without_a_window_has_empty_columns(dashboard):
    assert set(map(len, ask(dashboard, "get-dashboard-history").values())) == {0}


def test_a_reader_gets_the_newest_snapshot_and_each_later_one(dashboard):
    dashboard.tell(make_snapshot())
    stream = iter(ask(dashboard, "follow-snapshots").stream)
    first = next(stream)
    dashboard.tell(make_snapshot())
    enforcing = evolve(make_snapshot(), status=Status(Mode.SAFE_MODE, "requested"))
    dashboard.tell(enforcing)

    second = next(stream)

    assert b"event: snapshot\n" in first
    assert b'"mode": "safe_mode"' in second
    assert b"id: 3\n" in second


def test_closing_ends_a_stream_that_waits(dashboard):
    pieces = []
    stream = ask(dashboard, "follow-snapshots").stream
    reader = threading.Thread(target=lambda: pieces.extend(stream))
    reader.start()

    dashboard.close()
    reader.join(30)

    assert not reader.is_alive()
    assert pieces == []
