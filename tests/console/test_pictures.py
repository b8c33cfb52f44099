import re
from xml.etree import ElementTree as ET

import pytest
from attrs import evolve

from temper_plugin_console import map as cpu_map
from temper_plugin_console import top

COMMANDS = pytest.mark.parametrize(
    "command", [top.command, cpu_map.command], ids=lambda command: command.name
)
NASTY = "<b>&\x1b[31m\x00"


def text_of(path):
    words = "".join(ET.parse(path).getroot().itertext())
    return words.replace("\xa0", " ")


@COMMANDS
@pytest.mark.usefixtures("agent")
def test_a_picture_has_what_the_terminal_would_show(temper, view, tmp_path, command):
    view.last = evolve(view.last, threads=(evolve(view.last.threads[0], cpu=0),))
    path = tmp_path / "picture.svg"

    result = temper(command, "--save", str(path), *quick(command))

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"temper: wrote {path}\n"
    assert "ib_worker" in text_of(path)


@COMMANDS
@pytest.mark.usefixtures("agent")
def test_a_picture_loads_nothing_from_elsewhere(temper, tmp_path, command):
    path = tmp_path / "picture.svg"
    temper(command, "--save", str(path), *quick(command))

    foreign = r'https?://[^"]+|url\([^#][^)]*\)|@import|<script|href'
    assert set(re.findall(foreign, path.read_text())) == {"http://www.w3.org/2000/svg"}


@COMMANDS
@pytest.mark.usefixtures("agent")
def test_an_odd_name_stays_text(temper, view, tmp_path, command):
    view.last = evolve(view.last, threads=(evolve(view.last.threads[0], comm=NASTY, cpu=0),))
    path = tmp_path / "picture.svg"

    temper(command, "--save", str(path), *quick(command))

    assert "<b>&\ufffd[31m\ufffd" in text_of(path)


@COMMANDS
@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    ("name", "problem"), [("picture.png", "must end in .svg"), ("no/such.svg", "No such file")]
)
def test_a_file_that_cannot_be_written_is_one_line(temper, tmp_path, command, name, problem):
    result = temper(command, "--save", str(tmp_path / name), *quick(command))

    assert getattr(result.exception, "exit_code", result.exit_code) == 2
    assert problem in f"{result.stderr}{result.exception}"


def quick(command):
    return ("--interval", "0.2") if command is top.command else ()
