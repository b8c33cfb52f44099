"""The record of a climb whose arms had an effect: report, plot and profile."""

from xml.etree import ElementTree as ET

import pytest
from attrs import evolve

from temper_core import parse_profile
from temper_plugin_trainer.refining.climb_plot import climb_plot
from temper_plugin_trainer.refining.report import Setting, report, verdict_of
from temper_plugin_trainer.refining.trained_profile import trained_profile
from tests.trainer.refining.surfaces import GAINS, NONE, TABLE, simulated

SETTING = Setting(
    workload="shop",
    pods=("shop/db-0",),
    command="./bench | tee <out>",
    metric="latency",
    unit="ms",
    better="lower",
    mode="enforcing",
    engine="1.1.4",
    machine="4 cores, 2 threads per core",
    kernel="6.18",
    date="2026-11-28",
    engines_used=2,
    measurements=200,
    bundles=(("shop.bundle.gz", "ab" * 32),),
    groups=("worker-#: sync compute, 95 % of a CPU",),
    untold=("unclear: io",),
)


@pytest.fixture(scope="module")
def outcome():
    return simulated(1, GAINS)


def test_the_profile_has_figures_that_its_schema_accepts(outcome):
    profile = parse_profile(trained_profile(outcome, TABLE, SETTING), "trained")

    (figure,) = profile.evidence.figures
    assert profile.evidence.effect == figure.effect == "better"
    assert figure.profile < figure.tiers_only
    assert profile.evidence.engine == "1.1.4"


def test_a_gain_below_the_spread_of_runs_is_called_so(outcome):
    before, after = outcome.confirmed
    noisy = evolve(outcome, confirmed=((before[0] * 9, *before[1:]), after))

    profile = parse_profile(trained_profile(noisy, TABLE, SETTING), "trained")

    assert profile.evidence.effect == "within the spread"


def test_the_plot_has_a_row_for_each_trial_and_the_confirmation(outcome):
    drawn = ET.fromstring(climb_plot(outcome))

    dots = [each for each in drawn if each.tag.endswith("circle")]
    assert len(dots) == len(outcome.trials) + 1
    filled = [dot for dot in dots if dot.get("fill") == "#009e73"]
    assert len(filled) == 1 + sum(trial.verdict == "kept" for trial in outcome.trials)


def test_the_report_names_bundle_groups_and_what_is_not_known(outcome):
    text = report(outcome, SETTING)

    assert f"| bundle shop.bundle.gz | SHA-256 `{'ab' * 32}` |" in text
    assert "- worker-#: sync compute, 95 % of a CPU" in text
    assert "- unclear: io" in text
    assert "`./bench \\| tee &lt;out>`" in text, "a cell of a table takes no bar"


def test_without_an_improvement_the_verdict_says_so():
    outcome = simulated(1, NONE)

    assert verdict_of(outcome) == "no improvement found"
    assert "**Verdict: no improvement found.**" in report(outcome, SETTING)
