import re

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from temper_core.records.snapshots import Observing, Pressure, PressureLine
from temper_plugin_console.top.pane_boxes import PaneInput
from temper_plugin_console.top.processes import Process
from temper_plugin_console.top.screen import arranged, screen, whole_text
from temper_plugin_console.top.view import PANES, View, after_key
from tests.console.observations import (
    NEARLY_OBSERVATIONS,
    WINDOW,
    a_pod,
    a_thread,
    an_observation,
)


@pytest.fixture
def seen(view):
    return PaneInput(an_observation(view.last, wakes=WINDOW))


def lines_of(seen, view=None, width=100, height=60):
    return [line.plain.rstrip() for line in screen(seen, view or View(), width, height).lines]


def pane(lines, number):
    """Return the lines below the title of a pane, up to the next one's."""
    start = next(n for n, line in enumerate(lines) if re.match(rf"\[{number}\] [a-z]+", line))
    found = []
    for line in lines[start + 1 :]:
        if re.match(r"\[[1-5]\] [a-z]+|q quit", line):
            break
        found.append(line)
    return found


def column(lines, title):
    start = lines[0].index(title)
    return [line[start:].split("  ")[0].strip() for line in lines[1:] if line]


@pytest.mark.parametrize("width", [20, 80, 132, 250])
@pytest.mark.parametrize("height", [1, 5, 24, 70])
@pytest.mark.parametrize("chosen", PANES)
def test_a_screen_has_exactly_the_size_it_is_given(seen, width, height, chosen):
    lines = screen(seen, View(pane=chosen), width, height).lines

    assert len(lines) == height
    assert max(cell_len(line.plain) for line in lines) <= width


def test_the_lines_above_the_panes_are_folded_on_a_terminal_and_whole_in_a_pipe(view):
    reason = "observation costs 0.97% of a core (budget 1.00%): every 10 s, not 5 s"
    observing = Observing("bpf", period_s=10.0, stretched=reason)
    seen = PaneInput(an_observation(view.last, observing=observing))

    folded = [line.plain for line in whole_text(seen, 60)]
    whole = [line.plain for line in whole_text(seen, 10_000, folds=False)]

    assert reason in whole[1]
    assert " ".join(folded[: folded.index("")]).split() == " ".join(whole[:3]).split()
    assert max(map(len, folded[: folded.index("")])) <= 60


@settings(max_examples=30)
@given(NEARLY_OBSERVATIONS, st.integers(1, 260), st.integers(1, 60), st.sampled_from(PANES))
def test_no_document_upsets_the_screen(document, width, height, chosen):
    for sort in ("cpu", "wait", "name"):
        drawn = screen(PaneInput(document), View(pane=chosen, sort=sort, kept="a"), width, height)

        assert len(drawn.lines) == height
    tree = screen(PaneInput(document), View(is_tree=True), width, height)
    assert len(tree.lines) == height
    assert len(tree.places) <= height
    assert all(line.plain.isprintable() for line in whole_text(PaneInput(document), 10_000))


def titles_of(lines):
    return [line.split()[1] for line in lines if re.match(r"\[[1-5]\] [a-z]", line)]


def test_every_pane_is_seen_on_a_tall_terminal(seen):
    assert titles_of(lines_of(seen, width=80, height=40)) == list(PANES)


@pytest.mark.parametrize("chosen", PANES)
def test_the_chosen_pane_is_among_those_that_a_small_terminal_has_room_for(seen, chosen):
    titles = titles_of(lines_of(seen, View(pane=chosen), width=80, height=24))

    assert chosen in titles
    assert len(titles) >= 4


def test_the_chosen_pane_has_half_of_the_screen(seen):
    lines = lines_of(seen, View(pane="threads"), width=80, height=24)

    assert len(pane(lines, 4)) >= 9


def test_the_header_says_mode_generation_engine_tier_and_cost(view):
    observing = Observing("bpf", period_s=5.0, stretched="costs too much")
    seen = PaneInput(an_observation(view.last, observing=observing))

    header = lines_of(seen, width=200)[:3]

    assert header[0].startswith("node-a  enforcing  generation 7  scx_layered 1.1.4")
    assert "tier bpf  every 5 s  cost 0.30% of a core, 48 MiB" in header[1]
    assert header[1].endswith("psi cpu 25.0%  io -  mem -  costs too much")
    assert header[2].startswith("violations 1: smt_collision shop/web: shared")


def test_the_map_puts_siblings_beside_each_other_with_owner_share_and_thread(view):
    document = an_observation(view.last, threads=(a_thread(4, cpu_used=0.5, cpu=1),))
    seen = PaneInput(document, busy={0: 0.25, 1: 1.0})

    first = pane(lines_of(seen, width=80), 1)[0]

    left, right = first.split("|")
    assert left.split() == ["0", "critical", "25%"]
    assert right.split()[:4] == ["1", "critical", "100%", "worker-4"]
    assert "[shop/" in right


def test_without_the_kernels_count_a_cpu_is_as_busy_as_its_threads(view):
    threads = (a_thread(4, cpu_used=0.5, cpu=2), a_thread(5, cpu_used=0.25, cpu=2))

    lines = lines_of(PaneInput(an_observation(view.last, threads=threads)), width=80)

    assert re.search(r" 2 open +~ 75% worker-4", "\n".join(lines))


@pytest.mark.parametrize(("width", "rows"), [(30, 8), (80, 4), (160, 2)])
def test_the_map_has_as_many_cpus_beside_each_other_as_fit(seen, width, rows):
    lines = pane(lines_of(seen, View(pane="cpus"), width, 60), 1)

    assert len(lines) == rows


def test_threads_show_cpu_wait_switches_migrations_and_layer(view):
    threads = (
        a_thread(1, cpu_used=0.5, run_delay_ratio=0.2),
        a_thread(2, layer_is_known=False, voluntary=-1),
        a_thread(3, layer="open", waiting_s=0.0123),
        a_thread(4, layer="", layer_is_known=False),
    )

    rows = pane(lines_of(PaneInput(an_observation(view.last, threads=threads)), width=150), 4)

    assert column(rows, "layer") == [
        "critical", "critical?", "open (should be critical)", "(critical)"
    ]  # fmt: skip
    assert re.search(r"50\.0% +20\.0% +10 +3", "\n".join(rows))
    assert "12 ms" in "\n".join(rows)


def test_threads_show_user_and_memory_of_a_process_that_is_on_this_host(view):
    threads = (a_thread(1, tgid=1), a_thread(2, tgid=2))
    seen = PaneInput(
        an_observation(view.last, threads=threads), processes={1: Process("ada", 5 << 20)}
    )

    first, second = pane(lines_of(seen, width=150), 4)[1:]

    assert first.split()[-3:] == ["ada", "5M", "mysqld"]
    assert "ada" not in second
    assert column(pane(lines_of(seen, View(kept="ada"), width=150), 4), "user") == ["ada"]


def test_threads_are_sorted_by_cpu_by_wait_and_by_name(view):
    threads = (
        a_thread(1, comm="b", cpu_used=0.3, run_delay_ratio=0.0),
        a_thread(2, comm="c", cpu_used=0.2, run_delay_ratio=0.9),
        a_thread(3, comm="a", cpu_used=0.1, run_delay_ratio=0.5),
    )
    seen = PaneInput(an_observation(view.last, threads=threads))

    orders = {
        sort: column(pane(lines_of(seen, View(sort=sort)), 4), "thread")
        for sort in ("cpu", "wait", "name")
    }

    assert orders == {"cpu": ["b", "c", "a"], "wait": ["c", "a", "b"], "name": ["a", "b", "c"]}


def test_a_filter_leaves_the_pods_and_threads_that_hold_it(view):
    threads = (a_thread(1), a_thread(2, namespace="ci", pod="noise"))
    pods = (a_pod(), a_pod("batch"))
    seen = PaneInput(an_observation(view.last, threads=threads, pods=pods))

    lines = lines_of(seen, View(kept="NOIS"))

    assert column(pane(lines, 4), "pod") == ["ci/noise"]
    assert any(line.startswith("[3] pods  none, only 'NOIS'") for line in lines)
    assert pane(lines, 3) == []


def test_pods_show_tier_use_delay_throttling_pressure_and_threads(view):
    line = PressureLine(0.25, 0.1, 0.1, 7)
    pod = a_pod(
        memory_bytes=300 << 20, throttled_ratio=0.5, run_delay=0.3, pressure={"cpu": Pressure(line)}
    )

    rows = pane(lines_of(PaneInput(an_observation(view.last, pods=(pod,))), width=120), 3)

    assert rows[1].split() == [
        *("shop/web", "critical", "50.0%", "30.0%", "50.0%", "25.0%", "4", "300M")
    ]


def test_layers_show_cpus_use_and_fallback(seen):
    rows = pane(lines_of(seen, width=120), 2)

    assert rows[1].split()[:7] == ["critical", "Confined", "0-1", "140.0%", "70.0%", "12", "0.0%"]
    assert rows[2].split()[:7] == ["open", "Open", "2-4,6-7", "50.0%", "-", "90", "60.0%"]


def test_waits_tell_who_was_delayed_by_whom_who_woke_whom_and_how_long_one_waits(seen):
    rows = "\n".join(pane(lines_of(seen, View(pane="waits"), width=150), 5))

    assert re.search(r"ib_worker +shop/web +delayed by +spinner +ci/noise +5 +34\.1 ms", rows)
    assert re.search(r"ib_worker +shop/web +woken by +an interrupt +120", rows)
    assert re.search(r"node +waits +p50 < 8\.0 us, p99 < 2\.0 ms +8 +500\.0 ms", rows)


def test_without_a_window_the_waits_say_how_to_get_one(view):
    lines = lines_of(PaneInput(an_observation(view.last)))

    assert "temper wakes" in pane(lines, 5)[0]


def test_scrolling_ends_with_the_last_row_and_keeps_the_titles(seen):
    drawn = screen(seen, View(first=1_000_000), 80, 24)

    rows = pane([line.plain.rstrip() for line in drawn.lines], 4)
    assert rows[0].split()[0] == "tid"
    assert rows[-1].split()[0] == "39"
    assert drawn.first == 39 - len(rows[1:])


def test_one_row_down_from_the_top_is_one_row_further(seen):
    view = after_key(View(), "down")

    first, second = (pane(lines_of(seen, each, height=24), 4) for each in (View(), view))

    assert second[1:-1] == first[2:]
    assert second[-1] not in first


@pytest.mark.parametrize("comm", ["\x1b[2J", "a\rb", "[red]x", "\u202eevil", "\ud800", "é字字"])
def test_a_threads_name_steers_nothing(view, comm):
    document = an_observation(view.last, threads=(a_thread(1),))
    document["threads"][0]["comm"] = comm

    lines = screen(PaneInput(document), View(), 80, 24).lines

    assert all(line.plain.isprintable() for line in lines)
    assert max(cell_len(line.plain) for line in lines) <= 80


def test_trouble_is_told_in_the_last_line_and_the_screen_stays(seen):
    lines = lines_of(evolve(seen, trouble="no agent answers"), width=80, height=24)

    assert lines[-1].startswith("no agent answers (below is the last observation)")
    assert "generation 7" in lines[0]


def test_the_last_line_tells_the_keys_the_pause_and_the_filter_as_it_is_typed(seen):
    last = [
        lines_of(seen, view, height=24)[-1]
        for view in (View(), View(is_paused=True), View(typed="we"))
    ]

    assert last[0].startswith("q quit")
    assert last[1].startswith("PAUSED")
    assert last[2] == "/we_"


def test_help_explains_every_key(seen):
    told = "\n".join(lines_of(seen, View(is_helping=True), height=24))

    for key in ["q, Ctrl-C", "1-5, tab", "c, w, n", "/", "space"]:
        assert f"\n{key} " in told


def test_a_wide_screen_has_the_chosen_pane_on_the_left(seen):
    lines = lines_of(seen, View(pane="pods"), width=220, height=30)

    assert lines[3].startswith("[3] pods")
    assert "[1] cpus" in lines[3][100:]


@given(st.dictionaries(st.sampled_from(PANES), st.integers(1, 60), min_size=1), st.integers(0, 90))
def test_lines_are_shared_out_to_the_last_one(needed, height):
    given_lines = arranged(needed, "threads", height)

    total = sum(given_lines.values())
    assert total <= height
    assert all(given_lines[pane] <= needed[pane] for pane in needed)
    if "threads" in needed:
        assert total == min(height, sum(needed.values())) or 0 in given_lines.values()


def test_a_pipe_gets_every_row_of_every_pane(view):
    document = an_observation(view.last, threads=tuple(a_thread(n) for n in range(1, 301)))

    told = "\n".join(line.plain for line in whole_text(PaneInput(document), 10_000))

    assert all(f"worker-{n} " in told for n in range(1, 301))


@pytest.mark.parametrize("width", range(60, 140, 4))
def test_a_number_is_not_shortened_in_favour_of_a_name(view, width):
    threads = (a_thread(comm="x" * 15, process="y" * 15, pod="a-pod-of-a-long-name", cpu_used=0.5),)
    seen = PaneInput(an_observation(view.last, threads=threads))

    [row] = pane(lines_of(seen, width=width), 4)[1:2]

    assert " 50.0%  10.0%" in row
