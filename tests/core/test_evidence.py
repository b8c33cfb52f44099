"""The page of evidence says what other pages say, and names what there is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/evidence.md"
TEXT = PAGE.read_text()
COLUMNS = 6
MEASURED, COMMAND, PLACE, SOURCE = 2, 3, 4, 5
NUMBER = re.compile(r"\d[\d.,]*\d|\d")


def figures():
    """Yield the rows of the table of figures, cell by cell."""
    table = TEXT.partition("<!-- figures begin -->")[2].partition("<!-- figures end -->")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == COLUMNS, line
        yield cells


ROWS = list(figures())
WITH_FIGURES = [row for row in ROWS if row[SOURCE]]


def sources_of(row):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", row[SOURCE])
    return "\n".join((PAGE.parent / link).read_text() for link in links)


def is_in(number, text):
    """Whether *number* is in *text* as a number of its own, and not as part of another."""
    return re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", text) is not None


def costs():
    """Return the cells with figures of the README's table, which are those of the page."""
    readme = (ROOT / "README.md").read_text()
    table = readme.partition("<!-- costs begin -->")[2].partition("<!-- costs end -->")[0]
    return [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")][2:]


@pytest.mark.parametrize("cell", costs())
def test_a_figure_of_the_readme_is_one_of_the_evidence(cell):
    text = TEXT + (ROOT / "docs/limits.md").read_text()
    figure = re.sub(r"\]\([^)]*\)", "", cell)

    assert [number for number in NUMBER.findall(figure) if not is_in(number, text)] == []


def test_there_are_rows_with_figures_and_rows_without():
    assert len(WITH_FIGURES) > 10
    assert len(ROWS) > len(WITH_FIGURES)


@pytest.mark.parametrize("row", WITH_FIGURES, ids=[row[0] for row in WITH_FIGURES])
def test_every_figure_is_in_the_page_that_is_named(row):
    text = sources_of(row)

    assert [number for number in NUMBER.findall(row[MEASURED]) if not is_in(number, text)] == []


@pytest.mark.parametrize("row", WITH_FIGURES, ids=[row[0] for row in WITH_FIGURES])
def test_a_figure_has_a_command_and_a_machine(row):
    assert row[COMMAND]
    assert row[PLACE]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_promise_without_a_page_says_that_it_is_not_measured(row):
    assert bool(row[SOURCE]) != (row[MEASURED] == "not measured")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[\w./]+)`", TEXT))))
def test_every_test_that_is_named_is_there(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`((?:make|python) [^`]+)`", TEXT))))
def test_every_command_that_is_named_is_there(command):
    program, first, *rest = command.split()
    if program == "make":
        assert re.search(rf"^{first}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif first == "-m":
        module = ROOT / rest[0].replace(".", "/")
        assert module.is_dir() or module.with_suffix(".py").exists()
    else:
        assert (ROOT / first).exists()
