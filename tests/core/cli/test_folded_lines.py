import io
import subprocess
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from temper_core.console import columns, folded
from tests.core.cli.pseudo_terminal import CONTROL, written_on
from tests.core.cli.test_command_line import TEMPER

EXAMPLES = Path(__file__).parents[3] / "examples"
SENTENCE = "steering needs /sys/fs/bpf on a BPF file system, and the mount-option mode=700"


@pytest.fixture
def settings(tmp_path):
    """Settings with directories of their own, and without an agent's port."""
    path = tmp_path / "agent.toml"
    path.write_text(
        f'run_directory = "{tmp_path}/run"\nstate_directory = "{tmp_path}/state"\n'
        '[server]\nlisten = ""\n'
    )
    return path


@pytest.fixture
def doctor(settings):
    """The command, with directories of its own, and without plugins."""
    return [TEMPER, "doctor", "--settings", str(settings)]


@pytest.mark.parametrize("width", [80, 100])
def test_doctor_breaks_no_word_on_a_narrow_terminal(doctor, tmp_path, width):
    piped = subprocess.run(doctor, check=False, capture_output=True, text=True).stdout

    lines = written_on(doctor, "not affected", width)

    words = {word for line in piped.splitlines() for word in line.split()}
    shown = [word for line in lines for word in line.split()]
    assert max(map(len, piped.splitlines())) > width
    # The path of these directories is a word that may be longer than a line.
    assert [line for line in lines if len(line) > width and str(tmp_path) not in line] == []
    assert {word for word in shown if not word.isdecimal()} <= words


def test_doctor_has_a_line_for_each_text_in_a_pipe(doctor):
    piped = subprocess.run(doctor, check=False, capture_output=True, text=True).stdout

    checks = piped.partition("\n\n")[0].splitlines()
    assert all(line[:5].strip() in ("ok", "warn", "FAIL", "?", "") for line in checks)
    assert all(line.strip().startswith("->") for line in checks if not line[:5].strip())


def test_a_profile_is_readable_at_80_columns():
    lines = written_on([TEMPER, "profiles", "show", "mysql-innodb"], "all others", 80)

    visible = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in lines]
    assert max(map(len, visible)) <= 80
    [group] = [line for line in visible if line.startswith("connections ")]
    assert group.split()[:4] == ["connections", "exclusive", "0.85", "comm_prefix"]
    assert sum(line.strip().startswith("or comm_prefix") for line in visible) > 5


def test_an_explanation_keeps_its_column_of_labels_free():
    pods = ("--pods", str(EXAMPLES / "podlists/mixed-node.yaml"))
    machine = ("--machine", str(EXAMPLES / "machines/16-cores.toml"))

    lines = written_on([TEMPER, "explain", "shop/mysql-0", *pods, *machine], "one more core", 80)

    _, *others = lines
    assert max(map(len, lines)) <= 80
    assert {line[:9].strip() for line in others} == {
        "", "tier", "profile", "layer", "note", "change",
    }  # fmt: skip


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize(
    "arguments",
    [
        ("lint", "--explain", "starvation"),
        ("simulate", str(EXAMPLES / "recordings/busy-node.rec.gz")),
    ],
)
def test_no_line_is_longer_than_the_terminal(arguments, width, settings):
    lines = written_on([TEMPER, *arguments, "--settings", str(settings)], "No ", width)

    visible = [CONTROL.sub("", line) for line in lines]
    assert max(map(len, visible)) <= width
    assert any(line.startswith("No ") for line in visible)


class NarrowTerminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("indent", [0, 10])
def test_a_text_is_folded_at_words_behind_its_indentation(monkeypatch, indent):
    monkeypatch.setenv("COLUMNS", "40")
    with redirect_stdout(NarrowTerminal()):
        first, *others = folded(SENTENCE, indent).split("\n")

    assert len(first) <= 40 - indent
    assert all(line.startswith(" " * indent) and len(line) <= 40 for line in others)
    assert " ".join([first, *map(str.strip, others)]) == SENTENCE


def test_a_terminal_without_room_for_the_indentation_folds_by_itself(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    with redirect_stdout(NarrowTerminal()):
        assert folded(SENTENCE, 30) == SENTENCE


def test_a_text_in_a_pipe_stays_on_one_line():
    assert folded("word " * 100) == "word " * 100


HEADS = ["pod", "tier", "CPU request", "memory request", "memory limit"]
POD = "shop/checkout-service-with-a-very-long-name-7d9c4b5f6-x2x8k"
CELLS = ["high", "2 -> 0.25", "none", "none -> 512Mi"]
REASON = "one thread is hot, " * 100


def test_columns_fit_a_narrow_terminal_without_a_broken_word(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with redirect_stdout(NarrowTerminal()):
        lines = columns(HEADS, [[POD, *CELLS]], [[REASON]])

    assert max(map(len, lines)) <= 80
    assert lines[:3] == [
        POD,
        "    tier high  CPU request 2 -> 0.25  memory request none",
        "    memory limit none -> 512Mi",
    ]
    assert " ".join(" ".join(lines[3:]).split()) == REASON.strip()


def test_columns_that_fit_a_terminal_are_a_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    with redirect_stdout(NarrowTerminal()):
        head, row, below = columns(HEADS, [[POD, *CELLS]], [["one thread is hot"]])

    assert head.index("tier") == row.index("high") == len(POD) + 2
    assert below == "    one thread is hot"


@pytest.mark.parametrize("width", ["20", "80", "400"])
def test_columns_are_whole_in_a_pipe(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    with redirect_stdout(io.StringIO()):
        head, row, below = columns(HEADS, [[POD, *CELLS]], [[REASON]])

    assert head.index("tier") == row.index("high") == len(POD) + 2
    assert below.strip() == REASON.strip()
