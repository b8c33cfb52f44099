"""A trace that was captured in the guest under scx_layered, read on this machine."""

import json
from pathlib import Path

import pytest

from temper_plugin_tracer.trace.analysis.report import Report, Subject
from temper_plugin_tracer.trace.analyzing import analyze
from temper_plugin_tracer.trace.reading import open_trace
from tests.kernel.guest import TRACED, Walked, assert_held
from tests.tracer.trace.equal_sums import assert_equal_sums
from tests.tracer.trace.perfetto_ui import errors_in, opened_in_ui, text_of

MANY_ROWS = 5_000
PERCENT = 5
"""Others of the node run on the CPU too: the agent and the command that captures."""


@pytest.fixture(scope="session")
def path(traced: Walked) -> Path:
    assert_held("traced", TRACED, traced)
    return traced.share / "x.pftrace"


@pytest.fixture(scope="session")
def report(path: Path) -> Report:
    return analyze(open_trace(path), rows=MANY_ROWS)


@pytest.fixture(scope="session")
def culprits(traced: Walked, path: Path) -> dict[str, dict[str, int]]:
    assert path.exists()
    found: dict[str, dict[str, int]] = json.loads((traced.share / "culprits.json").read_text())
    return found


def thread(report: Report, tid: int) -> Subject:
    return next(one for one in report.subjects["thread"] if one.name.endswith(f"[{tid}]"))


def test_run_times_waits_and_wake_ups_are_those_of_trace_processor(path: Path):
    sums, broken = assert_equal_sums(path)

    assert not broken
    assert any(wakeups for _, _, wakeups in sums.values())


def test_it_opens_in_the_ui_without_an_error(path: Path):
    with opened_in_ui(path.read_bytes()) as page:
        shown = text_of(page)

        assert errors_in(page) == {}
    assert "CPU 3 Scheduling" in shown


def test_a_busy_sibling_is_named(report: Report, culprits: dict[str, dict[str, int]]):
    scene = culprits["sibling"]

    victim = thread(report, scene["victim"])

    busiest = next(share for share in victim.sharers["thread"] if share.kind != "idle")
    assert busiest.party == f"payments[{scene['culprit']}]"
    assert victim.shared_ns is not None
    assert busiest.ns <= victim.shared_ns <= victim.run_ns


def test_a_neighbour_of_the_same_layer_is_named(
    report: Report, culprits: dict[str, dict[str, int]]
):
    scene = culprits["neighbour"]

    victim = thread(report, scene["victim"])

    shares = victim.blockers["thread"]
    (neighbour,) = [one for one in shares if one.party.endswith(f"[{scene['culprit']}]")]
    assert neighbour.relation == "same layer"
    assert neighbour.percent > PERCENT


def test_the_engine_itself_is_named(report: Report, culprits: dict[str, dict[str, int]]):
    scene = culprits["engine"]

    victim = thread(report, scene["victim"])

    engines = [share for share in victim.blockers["thread"] if share.kind == "engine"]
    assert engines
    assert all(share.party.startswith("scx_layered") for share in engines)
