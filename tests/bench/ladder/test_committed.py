"""The plots and the page that are committed are those of the committed records."""

from pathlib import Path

import pytest

from bench.ladder.arms import SPLIT, with_trained
from bench.ladder.plots import plots
from bench.ladder.rows import read, rows

LADDER = Path(__file__).parents[3] / "bench/ladder"
RECORDS = read(sorted((LADDER / "records").glob("*.jsonl")))
DRAWN = plots(rows(RECORDS))


@pytest.mark.parametrize("name", DRAWN)
def test_a_plot_is_that_of_the_records(name):
    assert (LADDER / "figures" / name).read_text() == DRAWN[name]


def test_there_are_no_other_plots():
    assert {path.name for path in (LADDER / "figures").iterdir()} == set(DRAWN)


def test_every_record_says_what_it_was_made_with():
    arms = with_trained(SPLIT)
    for record in RECORDS:
        assert record["kernel"]
        assert record["boot"]
        assert bool(record["plan"]) is bool(record["engine"]) is (record["arm"] != "stock")
        arm = arms[record["arm"]]
        assert bool(record["profile"]) is bool(arm.profile or arm.pack)
