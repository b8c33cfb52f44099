"""``temper top`` as a user has it: a terminal, keys, and a real agent of this machine."""

import itertools
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.core.cli.pseudo_terminal import PseudoTerminal
from tests.patience import PATIENCE_S

TEMPER = [sys.executable, "-c", "from temper_core.cli.main import main; main()"]
COLOUR = re.compile(r"\x1b\[(\d+;)*3\d(;\d+)*m")
NAME = "spin [red]\x1b"
SPINNING = f"""
import os, time
open("/proc/self/comm", "w").write({NAME!r})
if os.geteuid() == 0:
    os.nice(-10)  # among the busiest on a busy machine, too
while True:
    sum(range(20_000))
    time.sleep(0.002)
"""
DOZING = """
import threading, time
def doze():
    while True:
        time.sleep(0.05)
for _ in range(50):
    threading.Thread(target=doze, daemon=True).start()
doze()
"""
"""More threads that run in every period than any screen here has rows, however idle the machine."""


@pytest.fixture(scope="module")
def settings_of_a_real_agent(tmp_path_factory):
    """An agent that looks at this machine, with a busy thread of an odd name and many others."""
    folder = tmp_path_factory.mktemp("agent")
    path = folder / "agent.toml"
    path.write_text(
        f'run_directory = "{folder}/run"\nstate_directory = "{folder}"\n[server]\nlisten = ""\n'
        "[observe]\nperiod_s = 0.3\n[scheduler]\nenforce = false\n"
    )
    with (folder / "log").open("w") as log:
        started = [
            subprocess.Popen([sys.executable, "-c", SPINNING]),
            subprocess.Popen([sys.executable, "-c", DOZING]),
            subprocess.Popen([*TEMPER, "agent", "--settings", str(path)], stderr=log),
        ]
    try:
        wait_until(lambda: started[-1].poll() is not None or has_observed(path))
        assert started[-1].poll() is None, (folder / "log").read_text()
        yield path
    finally:
        for process in started:
            process.terminate()
            process.wait(PATIENCE_S)


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it never happened")


def has_observed(path):
    asked = subprocess.run(
        [*TEMPER, "observe", "--settings", str(path)], check=False, capture_output=True
    )
    return asked.returncode == 0


@pytest.fixture
def top(settings_of_a_real_agent):
    """Start ``temper top`` on a terminal."""
    started = []

    def start(*options, width=100, height=30, **environment):
        command = [*TEMPER, "top", "--interval", "0.3", "--settings"]
        terminal = PseudoTerminal(
            [*command, str(settings_of_a_real_agent), *options], width, height, **environment
        )
        started.append(terminal)
        return terminal

    yield start
    for terminal in started:
        terminal.close()


def is_drawn(lines):
    return "q quit" in lines[-1]


def title(lines, pane):
    return next((line for line in lines if re.search(rf"^\[[1-5]\] {pane}\b", line)), "")


def test_the_screen_fills_the_terminal_and_q_gives_it_back(top):
    terminal = top(width=80, height=24)
    lines = terminal.wait_for(is_drawn, "screen")
    is_taken = not terminal.is_as_before()

    terminal.press("q")

    assert is_taken
    assert "observe_only" in lines[0]
    assert re.search(r"cost \d+\.\d+% of a core", lines[1])
    assert title(lines, "cpus")
    assert title(lines, "threads")
    assert terminal.wait_for_end() == 0
    assert terminal.is_as_before()


def test_every_cpu_of_this_machine_is_on_the_map(top):
    terminal = top(height=70)

    lines = terminal.wait_for(is_drawn, "screen")

    drawn = "\n".join(lines)
    for cpu in os.sched_getaffinity(0):
        assert re.search(rf"(^|[ |]) *{cpu} .* *\d+%", drawn, re.MULTILINE)


def test_a_filter_finds_a_thread_whose_odd_name_steers_nothing(top):
    terminal = top()
    terminal.wait_for(is_drawn, "screen")

    terminal.press("/SPIN\r")

    lines = terminal.wait_for(
        lambda lines: "only 'SPIN'" in title(lines, "threads") and any("spin" in x for x in lines),
        "filtered thread",
    )
    assert any("spin [red]\N{REPLACEMENT CHARACTER}" in line for line in lines)


def test_keys_sort_switch_panes_help_and_scroll(top):
    terminal = top(width=80, height=24)
    terminal.wait_for(is_drawn, "screen")

    for keys, seen in [
        ("w", r"\[4\] threads .* by wait"),
        ("n3", r"\[4\] threads .* by name"),
        ("c", "by cpu"),
    ]:
        terminal.press(keys)
        terminal.wait_for(lambda lines, seen=seen: re.search(seen, "\n".join(lines)), seen)
    terminal.press("\t ")
    unscrolled = terminal.wait_for(
        lambda lines: row_after_titles(lines) and lines[-1].startswith("PAUSED"), "pause"
    )
    terminal.press("\x1b[B")
    terminal.wait_for(
        lambda lines: row_after_titles(lines) not in ("", row_after_titles(unscrolled)), "scrolling"
    )
    terminal.press("?")

    terminal.wait_for(lambda lines: any("q, Ctrl-C" in line for line in lines), "help")


def test_the_mouse_folds_the_tree_sorts_and_chooses_a_pane(top):
    terminal = top(width=100, height=40)
    terminal.wait_for(is_drawn, "screen")
    terminal.press("t/python\r")
    terminal.wait_for(lambda lines: place_of(lines, "  - python"), "group of the process")
    terminal.press(" ")  # so that no newer look moves the rows
    lines = terminal.wait_for(
        lambda lines: lines[-1].startswith("PAUSED") and place_of(lines, "  - python"), "pause"
    )

    click(terminal, *place_of(lines, "  - python"))
    terminal.wait_for(lambda lines: place_of(lines, "  + python"), "folded group")
    click(terminal, *place_of(terminal.screen(), "wait  "))
    terminal.wait_for(lambda lines: "sorted by wait" in title(lines, "threads"), "other order")
    click(terminal, *place_of(terminal.screen(), "[1] cpus"))
    terminal.press("\t")  # from the clicked pane to the one after it

    terminal.wait_for(lambda _: "\x1b[7m[2] layers" in terminal.written, "chosen pane")


def place_of(lines, words):
    """Return column and line of *words*, from 0, None where they are not."""
    found = ((line.find(words), number) for number, line in enumerate(lines))
    return next(((column, number) for column, number in found if column >= 0), None)


def click(terminal, column, line):
    terminal.press(f"\x1b[<0;{column + 1};{line + 1}M\x1b[<0;{column + 1};{line + 1}m")


def test_without_the_mouse_the_terminal_keeps_its_clicks(top):
    terminal = top("--no-mouse")

    terminal.wait_for(is_drawn, "screen")

    assert "?1000" not in terminal.written


def row_after_titles(lines):
    """Return the tid of the first row of threads."""
    titles = [n for n, line in enumerate(lines) if line.lstrip().startswith("tid ")]
    return lines[titles[0] + 1].split()[0] if titles else ""


def test_while_it_is_paused_the_screen_stays(top):
    terminal = top()
    terminal.wait_for(is_drawn, "screen")
    terminal.press(" ")
    paused = terminal.wait_for(lambda lines: lines[-1].startswith("PAUSED"), "pause")

    for _ in range(20):
        terminal.read()
    after = terminal.screen()
    terminal.press(" ")

    assert after == paused
    terminal.wait_for(lambda lines: is_drawn(lines) and lines[0] != paused[0], "newer look")


def test_another_size_gives_another_screen(top):
    terminal = top(width=80, height=24)
    terminal.wait_for(is_drawn, "screen")

    drawn = {}
    for size in [(200, 50), (40, 10), (7, 3), (120, 40)]:
        terminal.resize(*size)
        drawn[size] = terminal.wait_for(
            lambda lines: lines[0] and lines[-1].startswith("q qui"), f"screen of {size}"
        )

    assert len(threads_in(drawn[200, 50])) > len(threads_in(drawn[120, 40])) > 10
    assert not threads_in(drawn[7, 3])


def threads_in(lines):
    """Return the rows of the threads' pane."""
    from_titles = itertools.dropwhile(lambda line: not line.lstrip().startswith("tid "), lines)
    return [line for line in from_titles if re.match(r" *\d+ ", line)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_ends_it_with_the_terminal_restored(top, number):
    terminal = top()
    terminal.wait_for(is_drawn, "screen")

    terminal.send(number)

    assert terminal.wait_for_end() == -number
    assert terminal.is_as_before()
    assert "Traceback" not in terminal.written


def test_killed_while_a_filter_is_typed_on_a_stopped_screen_it_still_restores(top):
    terminal = top()
    terminal.wait_for(is_drawn, "screen")
    terminal.press(" /x")
    terminal.wait_for(lambda lines: lines[-1] == "/x_", "prompt")

    terminal.send(signal.SIGTERM)

    assert terminal.wait_for_end() == -signal.SIGTERM
    assert terminal.is_as_before()


@pytest.mark.parametrize("has_keys", [True, False])
def test_it_ends_quietly_with_a_terminal_that_goes_away(
    settings_of_a_real_agent, tmp_path, has_keys
):
    errors, (leader, follower) = tmp_path / "errors", os.openpty()
    with errors.open("wb") as stderr:
        watching = subprocess.Popen(
            [*TEMPER, "top", "--interval", "0.3", "--settings", str(settings_of_a_real_agent)],
            stdin=follower if has_keys else subprocess.DEVNULL, stdout=follower, stderr=stderr,
            start_new_session=True, env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
    os.close(follower)
    written = b""
    while b"q quit" not in written:
        written += os.read(leader, 65_536)

    while select.select([leader], [], [], 0.1)[0]:  # the screen is drawn to its end
        os.read(leader, 65_536)

    os.close(leader)

    assert watching.wait(PATIENCE_S) == 0
    assert errors.read_bytes() == b""


def test_ctrl_c_ends_it_clean(top):
    terminal = top()
    terminal.wait_for(is_drawn, "screen")

    terminal.press("\x03")

    assert terminal.wait_for_end() == 0
    assert terminal.is_as_before()
    assert "Traceback" not in terminal.written


def test_stopped_it_leaves_the_terminal_and_comes_back_when_it_goes_on(top):
    terminal = top()
    terminal.wait_for(is_drawn, "screen")

    terminal.press("\x1a")
    wait_until(lambda: terminal.read() or is_stopped(terminal.process.pid))
    terminal.read()
    was_given_back = terminal.is_as_before()
    terminal.written = ""
    terminal.send(signal.SIGCONT)

    assert was_given_back
    terminal.wait_for(is_drawn, "screen again")


def is_stopped(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_colours_can_be_turned_off(top):
    plain, colourful = top(NO_COLOR="1"), top()

    for terminal in (plain, colourful):
        terminal.wait_for(is_drawn, "screen")

    assert not COLOUR.search(plain.written)
    assert COLOUR.search(colourful.written)


@pytest.mark.parametrize("kind", ["dumb", ""])
def test_a_terminal_without_cursor_gets_one_screen_below_the_other(top, kind):
    terminal = top("--iterations", "2", TERM=kind)

    assert terminal.wait_for_end() == 0
    assert "\x1b" not in terminal.written
    assert terminal.written.count("observe_only") == 2


def test_without_an_agent_the_terminal_is_left_alone(top, tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(f'[server]\nlisten = ""\nsocket = "{tmp_path}/none.sock"\n')

    terminal = top("--settings", str(path))

    assert terminal.wait_for_end() == 3
    assert "no agent answers at" in terminal.written
    assert "\x1b[?1049h" not in terminal.written


def test_only_lines_that_have_changed_are_written_again(top):
    terminal = top("--interval", "60")
    terminal.wait_for(is_drawn, "screen")
    before = len(terminal.written)

    terminal.press("/")
    terminal.wait_for(lambda lines: lines[-1] == "/_", "prompt")

    assert 0 < len(terminal.written) - before < 300
