"""``temper simulate --save``: the plot has what the document has, and loads nothing."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from temper_core.cli.simulated_plot import COLOURS, MOST_LANES, plot
from tests.hostile_text.hostile import TEXTS

RECORDING = Path(__file__).parents[3] / "examples/recordings/busy-node.rec.gz"
SVG = "{http://www.w3.org/2000/svg}"
LEFT, WIDTH = 220, 720
"""The place of second 0, and the width of the whole time."""


def document(changes=(), violations=(), seconds=100.0):
    recording = {"node": "node-1", "began": "2026-11-21T09:38:00Z", "seconds": seconds}
    return {"recording": recording, "changes": list(changes), "violations": list(violations)}


def change(at_s, kind="none", **moves):
    listed = [{"pod": pod, "before": [], "after": after} for pod, after in moves.items()]
    return {"at_s": at_s, "change": kind, "reasons": [{"message": "a reason"}], "moves": listed}


def violation(from_s, until_s, message="too long"):
    return {
        "invariant": "starvation",
        "subject": "shop/web",
        "message": message,
        "from_s": from_s,
        "until_s": until_s,
    }


def drawn(of):
    return ET.fromstring(plot(of))


def spans(picture):
    """Return the title, the place and the width of each span, in percent of the time."""
    return [
        (
            span.find(f"{SVG}title").text.split(", ")[0],
            round((float(span.get("x")) - LEFT) / WIDTH * 100),
            round(float(span.get("width")) / WIDTH * 100),
        )
        for span in picture.iter(f"{SVG}rect")
    ]


def test_a_pod_has_a_span_for_each_time_in_a_layer():
    picture = drawn(
        document([change(0.0, web=["open"]), change(25.0, web=["high"]), change(75.0, web=[])])
    )

    assert spans(picture) == [("open", 0, 25), ("high", 25, 50)]
    assert [span.get("fill") for span in picture.iter(f"{SVG}rect")] == [*COLOURS[:2]]


def test_a_violation_that_stands_lasts_to_the_end():
    picture = drawn(document(violations=[violation(10.0, 20.0), violation(50.0, None)]))

    assert spans(picture) == [("too long", 10, 10), ("too long", 50, 50)]


def test_a_line_is_drawn_for_a_change_of_the_plan_alone():
    picture = drawn(document([change(0.0, "start"), change(50.0, "none")]))

    [line] = [path for path in picture.iter(f"{SVG}path") if path.get("class") == "change"]
    assert line.find(f"{SVG}title").text == "start: a reason, at 0 s"


def test_a_plot_has_an_end():
    many = {f"pod-{number}": ["open"] for number in range(MOST_LANES + 5)}

    picture = drawn(document([change(0.0, **many)]))

    assert len(spans(picture)) == MOST_LANES
    assert "5 more lanes are left out" in picture.find(f"{SVG}title").text


@pytest.mark.parametrize("text", [*TEXTS.values(), "<script>x</script>", '"><rect/>', "&amp;"])
def test_no_name_leaves_its_place(text):
    picture = drawn(
        document([change(0.0, "start", **{text: [text]})], [violation(0.0, 1.0, message=text)])
    )

    tags = {element.tag.removeprefix(SVG) for element in picture.iter()}
    assert tags == {"svg", "title", "style", "text", "path", "rect"}
    assert len(spans(picture)) == 2


def simulated(path):
    command = [Path(sys.executable).with_name("temper"), "simulate", RECORDING, "--save", path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_example_is_drawn_with_its_pods(tmp_path):
    done = simulated(tmp_path / "plot.svg")

    picture = ET.fromstring((tmp_path / "plot.svg").read_text())
    texts = {text for element in picture.iter(f"{SVG}text") for text in element.itertext()}
    assert done.returncode == 0, done.stderr
    assert f"wrote {tmp_path}/plot.svg" in done.stderr
    assert {"storefront", "ledger", "nightly-report", "search", "critical"} <= texts


def test_a_page_has_the_same_picture_and_allows_no_script(tmp_path):
    simulated(tmp_path / "plot.svg")
    simulated(tmp_path / "plot.html")

    page = (tmp_path / "plot.html").read_text()
    assert (tmp_path / "plot.svg").read_text() in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize("name", ["plot.png", "none/plot.svg"])
def test_a_file_that_cannot_be_written_is_one_line(tmp_path, name):
    done = simulated(tmp_path / name)

    assert done.returncode == 2
    assert "must end in .svg or .html" in done.stderr or "No such file" in done.stderr
    assert "Traceback" not in done.stderr
