"""Files that ``--save`` writes: whole or not at all, and never through a link."""

import os
from xml.etree import ElementTree as ET

import pytest

from temper_core import InputError
from temper_core.console import save_text, svg_picture
from tests.hostile_text.hostile import TEXTS

SVG = "{http://www.w3.org/2000/svg}"


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "plot.svg"
    path.write_text("before")
    known = path.stat().st_ino

    save_text(path, "after")

    assert path.read_text() == "after"
    assert path.stat().st_ino != known
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_is_refused_and_its_target_kept(tmp_path):
    target, link = tmp_path / "target", tmp_path / "plot.svg"
    target.write_text("kept")
    link.symlink_to(target)

    with pytest.raises(InputError, match="not a regular file"):
        save_text(link, "written")

    assert target.read_text() == "kept"


def test_a_pipe_is_refused_at_once(tmp_path):
    pipe = tmp_path / "plot.svg"
    os.mkfifo(pipe)

    with pytest.raises(InputError, match="not a regular file"):
        save_text(pipe, "written")


def test_what_cannot_be_written_leaves_the_file_before(tmp_path):
    path = tmp_path / "plot.svg"
    path.write_text("before")

    with pytest.raises(UnicodeEncodeError):
        save_text(path, "half \ud800")

    assert path.read_text() == "before"
    assert [*tmp_path.iterdir()] == [path]


def test_a_directory_that_is_missing_is_named(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        save_text(tmp_path / "none" / "plot.svg", "text")


@pytest.mark.parametrize("title", [*TEXTS.values(), "a <b> & c"], ids=[*TEXTS, "markup"])
def test_a_picture_has_its_title_whatever_it_contains_and_loads_nothing(title):
    picture = svg_picture(title, (900, 40), ['<rect class="bar" width="10" height="5"/>'])

    drawn = ET.fromstring(picture)
    assert drawn.get("viewBox") == "0 0 900 40"
    assert [each.tag.removeprefix(SVG) for each in drawn] == ["title", "style", "text", "rect"]
    assert drawn.find(f"{SVG}title").text == drawn.find(f"{SVG}text").text
    assert "url(" not in picture
    assert "href" not in picture


def test_the_rules_of_a_picture_are_those_of_its_screen():
    picture = svg_picture("t", (1, 1), [], light=".a { fill: #111 }", dark=".a { fill: #eee }")

    light, _, dark = picture.partition("prefers-color-scheme: dark")
    assert ".a { fill: #111 }" in light
    assert ".a { fill: #eee }" in dark
