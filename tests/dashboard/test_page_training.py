"""The effect of profiles and the results of trainings on the page of a real agent."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import grave
from tests.dashboard.dashboard_agent import TEMPER, TOKEN, DashboardAgent, until
from tests.dashboard.test_page_actions import enter
from tests.patience import PATIENCE_S

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


def command(agent, *words, workload, slowed_s=0):
    """Return a training of the pod, whose benchmark takes *slowed_s* longer."""
    candidate = agent.folder / "shop.toml"
    candidate.write_text(CANDIDATE)
    benchmark = (sys.executable, "-I", "-S", BENCHMARK, agent.folder / "run/agent.sock", "shop")
    once = shlex.join(map(str, benchmark))
    options = {
        "--pod": "shop",
        "--profile": candidate,
        "--benchmark": shlex.join(["sh", "-c", f"sleep {slowed_s}; exec {once}"]),
        "--metric": "latency",
        "--warm-up": 0,
        # Programs of other tests on this machine may wait, and are no reason to end a trial.
        "--more-waits": 9999,
        "--workload": workload,
        "--artifacts": agent.folder / "artifacts",
        "--settings": agent.folder / "agent.toml",
    }
    given = [str(part) for pair in options.items() for part in pair]
    return [TEMPER, "train", "run", "--rehearse", *given, *map(str, words)]


def train(agent):
    subprocess.run(command(agent, "--trials", 2, workload="shop"), check=True)


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


@pytest.fixture
def run(agent):
    """A training that runs."""
    words = command(agent, "--trials", 9, "--no-trace", workload="live", slowed_s=0.5)
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as run:
        until(lambda: [each for each in agent.read("training")["running"] if each["trial"]], "it")
        yield run
        # An interrupted run says that it is over, so the next test sees its own alone.
        run.send_signal(signal.SIGINT)


def is_inside(inner, outer):
    return inner["x"] >= outer["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_training_that_runs_is_seen_with_its_arm_its_trial_and_the_time_left(
    page, agent, run, scheme
):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{agent.address}#/training")
    panel = page.get_by_role("region", name="Training of live now")
    panel.wait_for()
    facts = panel.locator(".facts").inner_text()

    assert "trial 1" in facts
    assert re.search(r"block \d+ of at most 24", facts)
    assert re.search("Arm\n(the whole profile|the tier alone)", facts)
    assert re.search("Time left\nat most [0-9]+ (s|min|h)", facts)
    assert panel.get_by_role("progressbar").get_attribute("max") == "9"
    assert panel.get_by_role("button", name="Abort the training").is_disabled()
    assert grave(page) == []
    assert run.poll() is None


def test_a_training_is_aborted_with_a_token_after_a_question_and_audited(page, agent, run):
    page.goto(f"{agent.address}#/training")
    enter(page, TOKEN)
    abort = page.get_by_role("button", name="Abort the training")
    abort.click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").wait_for(state="detached")
    still = run.poll()
    abort.click()
    page.get_by_role("dialog").get_by_role("button", name="Abort", exact=True).click()
    _, errors = run.communicate(timeout=PATIENCE_S)
    abort.wait_for(state="detached")

    assert still is None
    assert run.returncode == 2
    assert "aborted by token ops" in errors
    assert agent.read("trials")["trials"] == agent.read("training")["running"] == []
    page.goto(f"{agent.address}#/events")
    page.get_by_label("Only actions").check()
    row = page.get_by_role("row").filter(has_text="DELETE /training/runs/")
    assert "token ops" in row.inner_text()


def test_a_training_that_is_killed_leaves_the_page(page, agent, run):
    page.goto(f"{agent.address}#/training")
    panel = page.get_by_role("region", name="Training of live now")
    panel.wait_for()
    run.kill()

    panel.wait_for(state="detached")


def test_a_page_without_a_training_says_so(page, agent):
    page.route("**/training", lambda route: route.fulfill(json={"results": []}))
    page.goto(f"{agent.address}#/training")

    page.get_by_text("The agent keeps no result of a training.").wait_for()
