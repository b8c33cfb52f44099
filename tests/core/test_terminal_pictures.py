"""Pictures of terminals show what the commands print now."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

from terminal_pictures import IMAGES, PICTURES, PLOTS, SCREENS, picture


@pytest.mark.parametrize("name", [*PICTURES, *PLOTS, *SCREENS])
def test_a_picture_is_what_its_command_prints(name):
    assert (IMAGES / name).read_text() == picture(name), "run python docs/terminal_pictures.py"


@pytest.mark.parametrize("name", [*PICTURES, *PLOTS, *SCREENS])
def test_a_picture_loads_nothing(name):
    assert "url(http" not in (IMAGES / name).read_text()
