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
from temper_core import InputError, Mode, Request, Status
from temper_core.testing import MadeContext, assert_keeps_contract, make_snapshot, make_thread
from temper_plugin_dashboard.history import MOST_POINTS
from temper_plugin_dashboard.instrument import ASSETS, Dashboard
from temper_plugin_dashboard.options import Options

REFERENCE = re.compile(r"""(?:href|src|from|import)\s*=?\s*["']([^"'#$]+)["']""")
ELSEWHERE = re.compile(r"(?:https?:)?//[a-z]")


@pytest.fixture
def dashboard():
    dashboard = Dashboard(Options())
    yield dashboard
    dashboard.close()


def ask(dashboard, name, **query):
    (endpoint,) = (each for each in dashboard.endpoints() if each.name == name)
    return endpoint.answer(Request(query))


def own_files():
    return [path for path in ASSETS.rglob("*") if path.suffix in {".js", ".html", ".css"}]


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_dashboard, "dashboard")


def test_the_setting_hides_actions():
    (instrument,) = temper_plugin_dashboard.temper_instruments({"actions": False})

    dashboard = instrument.open(MadeContext())

    assert ask(dashboard, "get-dashboard-settings") == {"actions": False}


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
    assert ask(Dashboard(Options()), "get-dashboard-history", since=str(moment))["at"] == []


@given(st.text(max_size=40).filter(lambda text: not is_finite(text)))
@example("nan")
@example("inf")
@example("9" * 31)
def test_any_other_moment_is_refused_in_one_line(text):
    with pytest.raises(InputError, match="since must be a number of seconds") as refused:
        ask(Dashboard(Options()), "get-dashboard-history", since=text)

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
