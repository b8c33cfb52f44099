"""The effect of profiles and the results of trainings on the page of a real agent."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dashboard.dashboard_agent import TEMPER, DashboardAgent

ROOT = Path(__file__).parents[2]
MEASURED_PROFILE = ROOT / "training-artifacts" / "served" / "profile.toml"
BENCHMARK = ROOT / "tests" / "trainer" / "refining" / "planted.py"
CANDIDATE = """
schema_version = 1
id = "shop"
[[thread_groups]]
name = "compute"
match = [{ comm_prefix = "worker-" }]
treatment = "boost"
[[thread_groups]]
name = "rest"
treatment = "yield"
"""


@pytest.fixture(scope="module")
def agent(program, tmp_path_factory):  # noqa: ARG001 - it has to run
    """Return an agent that has a measured profile in force, and a training behind it."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "profiles").mkdir()
    shutil.copy(MEASURED_PROFILE, folder / "profiles")
    more = f'profile = "served"\n[profiles]\ndirectory = "{folder}/profiles"\n'
    agent = DashboardAgent(folder, more)
    agent.start()
    try:
        train(agent)
        yield agent
    finally:
        agent.stop()


def train(agent):
    candidate = agent.folder / "shop.toml"
    candidate.write_text(CANDIDATE)
    benchmark = (sys.executable, "-I", "-S", BENCHMARK, agent.folder / "run/agent.sock", "shop")
    options = {
        "--pod": "shop",
        "--profile": candidate,
        "--benchmark": shlex.join(map(str, benchmark)),
        "--metric": "latency",
        "--trials": 2,
        "--warm-up": 0,
        "--artifacts": agent.folder / "artifacts",
        "--settings": agent.folder / "agent.toml",
    }
    given = [str(part) for pair in options.items() for part in pair]
    subprocess.run([TEMPER, "train", "run", "--rehearse", *given], check=True)


def shown_in(table):
    """Return the rows of a table, by the heads of its columns."""
    heads = table.get_by_role("columnheader").all_inner_texts()
    rows = [row.get_by_role("cell").all_inner_texts() for row in table.get_by_role("row").all()]
    return [dict(zip(heads, cells, strict=True)) for cells in rows[1:]]


def test_the_measured_effect_of_a_profile_in_force_is_shown(page, agent):
    page.goto(f"{agent.address}#/profiles")
    effects = page.get_by_role("region", name="Measured effect of profiles in force")
    effects.get_by_role("cell", name="round").wait_for()

    (shown,) = shown_in(effects)

    assert shown["Profile"].startswith("served")
    assert shown["Pods"] == "1"
    assert shown["Effect"] == "better"
    assert shown["Better by"] == "+253.2 %"
    assert shown["Tier alone"] == "7,999 us"
    assert shown["With the profile"] == "2,265 us"
    assert shown["Spread"] == "2,443 us"
    assert "scx_layered 1.1.4" in shown["Measured on"]


def test_a_result_has_its_verdict_its_arms_and_the_price(page, agent):
    result = json.loads((agent.folder / "artifacts/shop/result.json").read_text())
    page.goto(f"{agent.address}#/training")
    panel = page.get_by_role("region", name="Training of shop, ")
    panel.get_by_text(result["verdict"]).wait_for()

    first, second, confirmation = shown_in(panel)

    assert first["Change"] == "the whole profile\nagainst the tier alone"
    assert first["Verdict"] == "kept"
    assert second["Verdict"] == result["trials"][1]["verdict"]
    assert confirmation["Trial"] == "confirmation"
    kept = result["trials"][0]
    assert first["Gain"].startswith(f"+{100 * kept['gain']:.1f} %")
    assert "spread" in first["With the change"]
    waits = kept["candidate"]["others_wait"]
    assert waits is None or first["Others wait with it"] == f"{waits:.2f}"
    assert panel.get_by_text(f"{result['measurements']} measurements").count() == 1


def test_a_page_without_a_training_says_so(page, agent):
    page.route("**/training", lambda route: route.fulfill(json={"results": []}))
    page.goto(f"{agent.address}#/training")

    page.get_by_text("The agent keeps no result of a training.").wait_for()
