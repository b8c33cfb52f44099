"""Threads as a tree, and what a click on a screen means."""

import re

import pytest
from attrs import evolve

from temper_plugin_console.top.pane_boxes import PaneInput
from temper_plugin_console.top.places import Place, after_click, clicked
from temper_plugin_console.top.screen import screen
from temper_plugin_console.top.view import View
from tests.console.observations import a_pod, a_thread, an_observation

TREE = View(is_tree=True)
THREADS = (
    a_thread(1, tgid=1, comm="mysqld", container="db", cpu_used=0.5, run_delay_ratio=0.1),
    a_thread(2, tgid=1, comm="ib_io", container="db", cpu_used=0.25, run_delay_ratio=0.3),
    a_thread(3, tgid=3, comm="exporter", process="exporter", container="metrics", cpu_used=0.01),
    a_thread(4, tgid=4, comm="cron", namespace="", pod="", cgroup="cron.service/",
             cpu_used=0.02),
    a_thread(5, tgid=5, comm="rcu", namespace="", pod="", is_kthread=True, cpu_used=0.001),
)  # fmt: skip


@pytest.fixture
def seen(view):
    return PaneInput(an_observation(view.last, threads=THREADS, pods=(a_pod(),)))


def drawn(seen, view=TREE, width=110):
    return screen(seen, view, width, 60)


def rows(seen, view=TREE):
    """Return the cells of the pane of threads, a list for each row."""
    lines = [line.plain for line in drawn(seen, view).lines]
    start = next(n for n, line in enumerate(lines) if line.startswith("[4]"))
    end = next(n for n, line in enumerate(lines) if line.startswith("[5]"))
    return lines[start + 2 : end]


def labels(seen, view=TREE):
    return [re.split(r"(?<=\S)  +", line)[0] for line in rows(seen, view) if line.strip()]


def test_threads_are_below_their_process_container_and_pod(seen):
    assert labels(seen) == [
        "- shop/web",
        "  - db",
        "    - mysqld",
        "        mysqld",
        "        ib_io",
        "  - metrics",
        "      exporter",
        "- /cron.service",
        "    cron",
        "- kernel",
        "    rcu",
    ]


def test_a_group_has_the_sum_of_its_threads_and_the_longest_wait(seen):
    [pod] = [line for line in rows(seen) if line.startswith("- shop/web")]
    [process] = [line for line in rows(seen) if line.strip().startswith("- mysqld")]

    assert pod.split()[2:4] == ["76.0%", "30.0%"]
    assert process.split()[2:5] == ["1", "75.0%", "30.0%"]


def test_a_folded_group_hides_what_is_in_it(seen):
    folded = TREE.turned(("shop/web", "db"))

    assert labels(seen, folded)[:4] == ["- shop/web", "  + db", "  - metrics", "      exporter"]
    assert labels(seen, evolve(TREE, all_folded=True)) == [
        "+ shop/web",
        "+ /cron.service",
        "+ kernel",
    ]


def test_groups_have_the_order_of_the_view(seen):
    by_name = labels(seen, evolve(TREE, sort="name", all_folded=True))

    assert [label[2:] for label in by_name] == ["/cron.service", "kernel", "shop/web"]


def line_of(lines, words):
    return next(number for number, line in enumerate(lines) if words in line.plain)


@pytest.mark.parametrize("width", [110, 220])
@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("- db", {"turned_branches": frozenset({("shop/web", "db")})}),
        ("[3] pods", {"pane": "pods"}),
        ("[5] waits", {"pane": "waits"}),
        ("        ib_io", {}),
    ],
)
def test_a_click_folds_a_group_or_chooses_a_pane(seen, width, words, changes):
    shown = drawn(seen, width=width)
    number = line_of(shown.lines, words)
    line = shown.lines[number].plain

    view = after_click(TREE, shown.places[number], line, line.index(words))

    assert view == evolve(TREE, **changes)


@pytest.mark.parametrize(
    ("pane", "head", "order"),
    [("threads", "wait", "wait"), ("threads", "thread", "name"), ("pods", "delay", "wait"),
     ("layers", "fallback", "wait"), ("threads", "tid", "cpu")],
)  # fmt: skip
def test_a_click_on_a_head_sorts(seen, pane, head, order):
    shown = drawn(seen, View(pane=pane))
    title = line_of(shown.lines, f"] {pane}")
    heads = shown.lines[title + 1].plain

    view = after_click(View(pane=pane), shown.places[title + 1], heads, heads.index(head))

    assert (view.pane, view.sort) == (pane, order)


def test_a_click_beside_all_panes_changes_nothing(seen):
    shown = drawn(seen)

    assert after_click(TREE, shown.places[0], shown.lines[0].plain, 3) == TREE
    assert after_click(TREE, [Place("pods", left=10, width=5)], "", 15) == TREE


def test_only_a_click_is_one():
    assert clicked("click 12 5") == (11, 4)
    assert clicked("q") is None
