"""What the pages and the chart say of a scheduler's configuration."""

import re

from tests.control_plane.cluster import ROOT

CONFIGURED = (
    "deploy/helm/temper/templates/_density.tpl",
    "deploy/helm/temper/templates/_power.tpl",
    "docs/placement.md",
    "docs/power-extender.md",
)


def test_an_extender_that_hangs_costs_the_same_by_the_pages_and_the_chart():
    texts = "".join((ROOT / name).read_text() for name in CONFIGURED)

    assert re.findall(r"^ *httpTimeout: (\S+)$", texts, re.MULTILINE) == ["1s"] * 5
