from xml.etree import ElementTree as ET

import pytest

from bench.ladder.plots import plots, ticks
from bench.ladder.rows import rows

SVG = "{http://www.w3.org/2000/svg}"


def test_a_plot_has_a_dot_per_point_and_one_per_name(make_record):
    made = [make_record(arm, level=level) for arm in ("stock", "tiers") for level in (0, 4, 8)]

    drawn = plots(rows(made))

    assert set(drawn) == {"ladder-weight-p99.svg", "ladder-weight-idle.svg"}
    root = ET.fromstring(drawn["ladder-weight-p99.svg"])
    assert len(root.findall(f"{SVG}circle")) == 6 + 2
    assert len(root.findall(f"{SVG}polyline")) == 2


def test_latency_against_idle_has_the_highest_level_only(make_record):
    made = [make_record("stock", level=level) for level in (0, 4, 8)]

    root = ET.fromstring(plots(rows(made))["ladder-weight-idle.svg"])

    assert len(root.findall(f"{SVG}circle")) == 1 + 1


@pytest.mark.parametrize(
    ("most", "last", "number"),
    [(8, 8, 9), (18.6, 20, 5), (0.3, 0.3, 7), (100, 100, 6), (101, 120, 7), (0, 1, 2)],
)
def test_an_axis_has_round_numbers_up_to_the_largest_value(most, last, number):
    made = ticks(most)

    assert made[0] == 0
    assert (made[-1], len(made)) == (last, number)


def test_text_is_escaped(make_record):
    drawn = plots(rows([make_record("<tiers>")]))

    assert "&lt;tiers&gt;" in drawn["ladder-weight-p99.svg"]
