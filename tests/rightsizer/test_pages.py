"""Reports as HTML, as values for Helm and as the text of a pull request."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
import yaml
from attrs import asdict
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_rightsizer.advice.advising import advise
from temper_plugin_rightsizer.advice.options import USUAL
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.advice.use import used
from temper_plugin_rightsizer.commands import page
from temper_plugin_rightsizer.commands.page import as_html
from temper_plugin_rightsizer.commands.plots import cpu_plot
from temper_plugin_rightsizer.commands.pull_request import LONGEST, as_pull_request
from temper_plugin_rightsizer.commands.values import as_values
from temper_plugin_rightsizer.demand.interval import Counts
from tests.rightsizer.shapes import over_hours, window

MIB = 1024 * 1024
NOW = Resources(500, 2000, 256 * MIB, 512 * MIB)
HOSTILE = "<script>alert(1)</script>\"'&|`@all\x1b[31m"
VOID = {"meta"}


def row(name="web", container="app", current=NOW, used_cpus=1.0, **more):
    """Return a row of a report on a program with one hot thread."""
    demand = over_hours(lambda _: window(("hot", used_cpus), idle=0.2), hours=1)
    demand.counts = Counts(peak_bytes=200 * MIB)
    advice = advise(demand, current)
    return {
        "namespace": "shop",
        "pod": "",
        "owner": f"Deployment/{name}",
        "container": container,
        "replicas": 2,
        **asdict(advice),
        "hot_threads": list(advice.hot_threads),
        "reasons": list(advice.reasons),
        "used": used(demand, USUAL),
        **more,
    }


def report_of(*containers, **more):
    return {"at": "2026-11-26T16:00:00Z", "window_s": 21600, "containers": list(containers), **more}


class Page(HTMLParser):
    """Notes elements and attributes, and that each element is closed."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes, self.open, self.text = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_a_page_has_a_plot_of_use_against_request_and_of_the_hot_thread():
    found = Page(as_html(report_of(row())))

    assert found.open == []
    assert found.elements.count("svg") == 2
    shown = " ".join(found.text)
    assert "shop/web/app x2" in shown
    assert "busiest thread" in shown
    assert "1 hot thread uses" in shown
    assert "1 of 1 containers should change, by the last 6 h" in shown
    assert "Requested in all: CPU 1.00 -> 2." in shown


def test_a_page_needs_nothing_from_elsewhere():
    text = as_html(report_of(row()))
    found = Page(text)

    assert not {"script", "link", "img", "iframe", "object", "style@import"} & set(found.elements)
    names = {name for name, _ in found.attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"src", "href"})
    assert "default-src 'none'" in text
    assert "url(" not in text
    assert "@import" not in text


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_from_outside_is_an_element(name, reason):
    hostile = row(name + HOSTILE, container=name + HOSTILE, reasons=[reason + HOSTILE])
    found = Page(as_html(report_of(hostile, notes=[HOSTILE])))

    assert "script" not in found.elements
    assert found.open == []
    assert set(found.elements) == set(Page(as_html(report_of(row(), notes=["x"]))).elements)


def test_a_plot_is_drawn_to_scale():
    plot = ET.fromstring(cpu_plot(row()))

    def place(style):
        (path,) = [each for each in plot.iter("path") if each.get("class") == f"mark {style}"]
        return float(re.match(r"M([0-9.]+) ", path.get("d"))[1])

    zero = 110
    now, limit = place("now") - zero, place("limit now") - zero
    assert limit / now == pytest.approx(4, rel=0.01)
    peaks = [each for each in plot.iter("rect") if each.get("class") == "peak"]
    container, thread = (float(each.get("width")) for each in peaks)
    assert container / now == pytest.approx(1.2 / 0.5, rel=0.06)
    assert thread / now == pytest.approx(1.0 / 0.5, rel=0.06)


@given(
    st.lists(st.none() | st.floats() | st.text() | st.booleans(), max_size=7),
    st.floats() | st.none() | st.text(),
)
def test_any_figures_of_an_agent_make_a_page(quantiles, amount):
    odd = row(used={"cpu_quantiles": quantiles, "memory_peak_bytes": amount, "startup_s": amount})

    assert Page(as_html(report_of(odd))).open == []


def test_a_large_report_has_plots_of_what_should_change_first(monkeypatch):
    monkeypatch.setattr(page, "MOST_PLOTTED", 1)
    kept = row("kept", keeps=True)

    found = Page(as_html(report_of(kept, row("changed"))))

    assert found.elements.count("section") == 1
    assert "shop/changed/app x2" in " ".join(found.text)
    assert "1 more containers are in the table only." in " ".join(found.text)


def test_a_report_without_figures_of_use_has_no_plot():
    assert "<svg" not in as_html(report_of(row(used={})))


def test_values_have_the_resources_of_each_container_that_should_change():
    kept = row("kept", keeps=True)
    text = as_values(report_of(row(), row(container="side"), kept))

    values = yaml.safe_load(text)
    assert values.keys() == {"shop"}
    assert values["shop"].keys() == {"web"}
    assert values["shop"]["web"].keys() == {"app", "side"}
    assert values["shop"]["web"]["app"]["resources"]["requests"]["cpu"].endswith("m")
    assert "Each chart names its values differently" in text


def test_values_leave_out_what_a_vpa_sizes():
    text = as_values(report_of(row(managed_by="the VPA web (mode Auto)")))

    assert yaml.safe_load(text) is None
    assert "web: the VPA web (mode Auto) sets the requests" in text


def test_a_pull_request_has_a_title_a_table_and_the_reasons():
    title, empty, *body = as_pull_request(report_of(row(), notes=["VPA is not known"])).split("\n")

    assert (title, empty) == ("Rightsize shop/web", "")
    assert body[0].startswith("1 containers should change. Requested in all: CPU 1.00 -> ")
    assert any(line.startswith("| shop/web/app x2 | exclusive") for line in body)
    assert any("1 hot thread uses" in line for line in body)
    assert body[-1] == "- VPA is not known"


def test_a_pull_request_mentions_nobody():
    text = as_pull_request(report_of(row(f"getty@{HOSTILE}")))

    for line in text.split("\n"):
        outside = "".join(line.split("`")[::2])
        assert "@" not in outside
        assert "<script" not in outside.replace("\\<", "")


def test_a_pull_request_of_many_workloads_fits_into_the_text_of_one():
    rows = [row()] * 2000

    text = as_pull_request(
        report_of(*({**one, "owner": f"Job/j{n}"} for n, one in enumerate(rows)))
    )

    assert len(text) <= LONGEST
    assert text.startswith("Rightsize shop/j0, shop/j1, shop/j2 and 1997 more\n")


def test_without_a_change_there_is_one_line():
    assert as_pull_request(report_of(row(keeps=True))) == "No container should change"
