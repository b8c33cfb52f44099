"""Tables of results at several widths of a terminal."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.results_table import ResultsTable
from temper_core.rich_output import VisibleConsole

HEADS = ("layer", "cpus", "why")
ROWS = (
    ("mysql-innodb.connections.critical", "4", "2 cores with idle siblings, and 2 cores of 2 CPUs"),
    ("open", "none", "idle CPUs, shared by all pods that are left without a core of their own"),
)


def lines_at(width, rows=ROWS, heads=HEADS, below=()):
    """Return the lines that a terminal of *width* columns shows."""
    table = ResultsTable(heads)
    for row in rows:
        table.add_row(*row, below=below)
    output = io.StringIO()
    VisibleConsole(file=output, width=width).print(table)
    return output.getvalue().splitlines()


def test_a_wide_terminal_has_a_line_for_each_row():
    head, first, second = lines_at(130)

    assert head.split() == [*HEADS]
    assert first.split()[:2] == ["mysql-innodb.connections.critical", "4"]
    assert second.index("none") == first.index("4")


def test_only_the_widest_column_is_folded():
    lines = lines_at(80)

    assert lines[1].startswith("mysql-innodb.connections.critical  4 ")
    assert lines[2].startswith(" " * 40)
    assert max(map(len, lines)) <= 80


def test_a_narrow_terminal_has_a_block_for_each_row():
    assert [line.rstrip() for line in lines_at(60)] == [
        "mysql-innodb.connections.critical",
        "    cpus 4",
        "    why 2 cores with idle siblings, and 2 cores of 2 CPUs",
        "open",
        "    cpus none",
        "    why idle CPUs, shared by all pods that are left without",
        "      a core of their own",
    ]


def test_an_empty_cell_has_no_place_in_a_block():
    lines = lines_at(60, [(ROWS[0][0], "", "x" * 40)])

    assert [line.split()[0] for line in lines] == [ROWS[0][0], "why"]


@pytest.mark.parametrize("width", [80, 100, 160, 10_000])
def test_a_table_without_rows_has_its_heads(width):
    assert lines_at(width, ())[0].split() == [*HEADS]


def test_texts_below_a_row_have_the_whole_width_and_the_table_keeps_its_columns():
    below = ["two cores have idle siblings, so the other thread of each of these cores idles"]

    lines = [line.rstrip() for line in lines_at(80, below=below)]

    assert lines == [
        "layer                              cpus  why",
        "mysql-innodb.connections.critical  4     2 cores with idle siblings, and 2 cores",
        "                                         of 2 CPUs",
        "    two cores have idle siblings, so the other thread of each of these cores",
        "      idles",
        "open                               none  idle CPUs, shared by all pods that are",
        "                                         left without a core of their own",
        "    two cores have idle siblings, so the other thread of each of these cores",
        "      idles",
    ]


def test_texts_below_a_row_end_its_block():
    below = ["all pods of this tier are on the nodes of my-two-node-pool"]

    lines = lines_at(60, ROWS[:1], below=below)

    assert [line.rstrip() for line in lines[2:]] == [
        "    why 2 cores with idle siblings, and 2 cores of 2 CPUs",
        "    all pods of this tier are on the nodes of",
        "      my-two-node-pool",
    ]


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=200)


@given(
    st.lists(st.tuples(words, words, words), max_size=5),
    st.integers(80, 200),
    st.lists(words, max_size=2),
)
def test_no_text_is_lost_and_no_line_is_too_long(rows, width, below):
    lines = lines_at(width, rows, below=below)

    assert all(len(line) <= width for line in lines)
    shown = sorted("".join("".join(lines).split()))
    expected = sorted("".join("".join((*row, *below)) for row in rows))
    for character in set(expected):
        assert shown.count(character) >= expected.count(character)
