import json
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

from temper_core import DocumentError, InputError
from temper_plugin_trainer.commands.train import command
from temper_plugin_trainer.training.bundles import packed_bundle
from tests.trainer.training.bundled import BY_THREADS, bundle, edge, thread

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def written(tmp_path):
    def write(*threads, **more):
        path = tmp_path / "bundle.gz"
        path.write_bytes(packed_bundle(bundle(*threads, **more)))
        return path

    return write


def analyze(*arguments):
    return CliRunner().invoke(command, ["analyze", *map(str, arguments)])


def test_groups_are_shown_with_class_evidence_and_what_is_not_told(written):
    result = analyze(written(thread("worker-1", 3, 0.9, 1), thread("io", 4, 0.3, 5)))

    assert result.exit_code == 0
    assert "shop: 2 threads, 1.20 CPUs used in 10.0 s" in result.stdout
    assert "shop/worker-#" in result.stdout
    assert "sync compute" in result.stdout
    assert "unknown: unclear: shop/io" in result.stdout


def test_groups_are_json_with_their_evidence(written):
    path = written(thread("io", 4, 0.1, 500, sleeps_in=BY_THREADS))

    document = json.loads(analyze(path, "--output", "json").stdout)

    (group,) = document["groups"]
    assert document["representative"] is True
    assert (group["class"], group["confidence"]) == ("I/O wake chain", 0.8)
    assert (group["sleeps_per_s"], group["run_ms"]) == (500.0, 0.2)
    assert group["woken_by"] == {"other threads": 20}
    assert document["not_told"]


def test_the_wake_graph_is_drawn_with_all_groups_that_wake(written, tmp_path):
    drawing = tmp_path / "wakes.svg"
    threads = [thread("a<b>&", 3), thread("io", 4), thread("alone", 5)]
    path = written(
        *threads, edges=[edge(3, 4, 50), edge(4, 4, 5), edge(0, 3, 9, inside=False), edge(0, 4, 1)]
    )

    result = analyze(path, "--svg", drawing)

    texts = [each.text for each in ET.parse(drawing).iter(f"{SVG}text")]
    assert result.exit_code == 0
    assert {"shop/a<b>&", "shop/io", "interrupts", "50/s", "9/s", "5/s"} <= set(texts)
    assert not {"shop/alone", "1/s"} & set(texts)


def test_many_groups_are_drawn_within_bounds(written, tmp_path):
    drawing = tmp_path / "wakes.svg"
    names = [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(100)]
    threads = [thread(name, 100 + n) for n, name in enumerate(names)]
    path = written(*threads, edges=[edge(100 + n, 101 + n, 9) for n in range(99)])

    analyze(path, "--svg", drawing)

    root = ET.parse(drawing).getroot()
    assert len(root.findall(f"{SVG}rect")) == 24


def test_without_wake_ups_there_is_nothing_to_draw(written, tmp_path):
    result = analyze(written(thread("io")), "--svg", tmp_path / "wakes.svg")

    assert isinstance(result.exception, InputError)
    assert str(result.exception).endswith("has no wake-ups to draw: no agent answers")
    assert not (tmp_path / "wakes.svg").exists()


def test_a_drawing_that_is_there_is_kept(written, tmp_path):
    drawing = tmp_path / "wakes.svg"
    drawing.write_text("mine")

    result = analyze(written(thread("io", 4), edges=[edge(4, 4, 5)]), "--svg", drawing)

    assert isinstance(result.exception, InputError)
    assert drawing.read_text() == "mine"


def test_a_file_that_is_no_bundle_is_one_line(tmp_path):
    path = tmp_path / "bundle.gz"
    path.write_text("{}")

    result = analyze(path)

    assert isinstance(result.exception, DocumentError)
    assert result.exception.exit_code == 2
