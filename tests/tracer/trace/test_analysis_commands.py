"""``temper trace analyze`` and ``temper trace compare``."""

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from temper_plugin_tracer.trace.commands.analyze import command as analyze
from temper_plugin_tracer.trace.commands.compare import command as compare
from temper_plugin_tracer.trace.perfetto.writer import TraceWriter
from temper_plugin_tracer.trace.roster import CaptureFacts, TracedMachine, TracedThread
from tests.tracer.trace.scenes import events, switch, wake

SAMPLE = Path(__file__).parent / "samples" / "perf-script.txt"


def run(command, *arguments):
    result = CliRunner().invoke(command, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_table_has_waits_and_who_ran_meanwhile():
    output = run(analyze, SAMPLE, "--top", "5")

    assert "400 events" in output
    assert "threads that ran while it waited, by thread" in output
    assert "slowest wake-ups" in output


def test_shares_in_the_json_add_up_to_the_wait():
    report = json.loads(run(analyze, SAMPLE, "--output", "json", "--top", "3"))

    for subjects in report["subjects"].values():
        for subject in subjects:
            for shares in subject["blockers"].values():
                assert sum(share["ns"] for share in shares) == subject["wait_ns"]
                assert round(sum(share["percent"] for share in shares), 6) == 100.0


def test_only_the_subjects_asked_for_are_told():
    report = json.loads(run(analyze, SAMPLE, "--of", "perf", "--output", "json"))

    assert all("perf" in one["name"] for one in report["subjects"]["thread"])


def slowest(*options):
    """Return moment and thread of the slowest wake-ups that are told."""
    report = json.loads(run(analyze, *options, "--output", "json"))
    return [(one["at_ns"], one["woken"]) for one in report["slowest"]]


def test_of_some_threads_as_many_slowest_wake_ups_are_told_as_of_all():
    every = slowest(SAMPLE, "--top", "5000")
    others = [one for one in every[:3] if "perf" not in one[1]]

    assert others
    assert (
        slowest(SAMPLE, "--of", "perf", "--top", "3")
        == [one for one in every if "perf" in one[1]][:3]
    )


@pytest.fixture
def two_pods(tmp_path):
    """A trace of two pods with a thread each. The thread of shop/web-0 waits longer."""
    path = tmp_path / "two.pftrace"
    names = {10: "mysqld", 13: "nginx", 99: "x"}
    with path.open("wb") as out:
        writer = TraceWriter(out)
        writer.machine(TracedMachine(("Linux", "6.18", "1", "x86_64"), (0, 1)), {6: 1_000})
        threads = [
            TracedThread(10, 10, "mysqld", "mysqld", "shop/mysql-0", "workers", "high", "high"),
            TracedThread(13, 13, "nginx", "nginx", "shop/web-0"),
        ]
        writer.threads(threads, 1_000)
        waits = [switch(1_000, 0, 0, 99), switch(1_300, 0, 99, 10), switch(1_900, 0, 10, 13)]
        writer.events(0, events(*waits), names)
        wakes = [switch(1_000, 1, 0, 98), wake(1_100, 98, 10, 0, 1), wake(1_200, 98, 13, 0, 1)]
        writer.events(1, events(*wakes), names)
        writer.facts(CaptureFacts("n", 1.0, "bpf"))
    return path


@pytest.mark.parametrize(
    ("by", "of", "woken"),
    [
        ("pod", "shop/mysql", ["mysqld[10]"]),
        ("group", "workers", ["mysqld[10]"]),
        ("layer", "high", ["mysqld[10]"]),
        ("process", "nginx", ["nginx[13]"]),
        ("thread", "[13]", ["nginx[13]"]),
        ("thread", "shop/mysql", []),
    ],
)
def test_the_slowest_wake_ups_are_of_the_subjects_that_are_asked_for(two_pods, by, of, woken):
    options = (two_pods, "--by", by, "--of", of, "--top", "1")

    assert [thread for _, thread in slowest(*options)] == woken


def test_table_and_page_have_the_slowest_wake_ups_of_the_subject_only(two_pods):
    options = (two_pods, "--by", "pod", "--of", "shop/mysql", "--top", "1")

    table = run(analyze, *options).partition("slowest wake-ups")[2]
    page = run(analyze, *options, "--output", "html").partition("Slowest wake-ups")[2]

    for told in (table, page.partition("<h2>")[0]):
        assert "mysqld[10]" in told
        assert "nginx[13]" not in told


def test_a_trace_of_temper_is_told_with_pods_siblings_and_the_plan(tmp_path):
    path = tmp_path / "x.pftrace"
    threads = [
        TracedThread(13, 13, "nginx", "nginx", "shop/web-0", "", "high", "high"),
        TracedThread(10, 10, "mysqld", "mysqld", "shop/mysql-0", "workers", "high", "high"),
    ]
    with path.open("wb") as out:
        writer = TraceWriter(out)
        machine = TracedMachine(("Linux", "6.18", "1", "x86_64"), (0, 1), {0: 0, 1: 0})
        writer.machine(machine, {6: 1_000})
        writer.threads(threads, 1_000)
        first = events(switch(1_000, 0, 0, 13), switch(1_500, 0, 13, 10), switch(1_600, 0, 10, 0))
        writer.events(0, first, {10: "mysqld", 13: "nginx"})
        second = events(switch(1_000, 1, 0, 99), wake(1_100, 99, 10, 0, 1), switch(1_700, 1, 99, 0))
        writer.events(1, second, {99: "x"})
        writer.facts(CaptureFacts("n", 1.0, "bpf", planned={"high": (1,)}, lost={1: 3}))

    report = json.loads(run(analyze, path, "--output", "json"))

    (mysql,) = [one for one in report["subjects"]["pod"] if one["name"] == "shop/mysql-0"]
    assert [one["party"] for one in mysql["blockers"]["pod"]] == ["shop/web-0"]
    assert (mysql["wait_ns"], mysql["outside_ns"], mysql["shared_ns"]) == (400, 100, 100)
    assert report["lost"] == {"1": 3}
    assert "3 events were lost" in run(analyze, path, "--by", "pod")


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in {"src", "href", "onclick"}]


def test_the_page_needs_no_other_resource_and_escapes_names(tmp_path):
    path = tmp_path / "<img src=x>.txt"
    path.write_text(SAMPLE.read_text().replace("md5sum", "<b>x</b>"))

    output = run(analyze, path, "--output", "html")

    page = Page()
    page.feed(output)
    assert page.links == []
    assert not {"script", "img", "b", "link"}.intersection(page.tags)
    assert "&lt;b&gt;x&lt;/b&gt;" in output


def test_a_trace_compared_with_itself_has_no_change():
    document = json.loads(run(compare, SAMPLE, SAMPLE, "--by", "thread", "--output", "json"))

    assert document["changes"]
    assert all(change["before"] == change["after"] for change in document["changes"])
    assert "before and after, by pod" in run(compare, SAMPLE, SAMPLE)


@pytest.mark.parametrize("name", ["analyze", "compare"])
def test_a_bad_file_is_one_line_and_exit_code_2(tmp_path, name):
    path = tmp_path / "no-trace"
    path.write_text("hello\n")
    files = [path] if name == "analyze" else [path, path]

    program = [sys.executable, "-c", "from temper_core.cli.entry import main; main()", "trace"]
    ended = subprocess.run([*program, name, *files], capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert ended.stderr == f"temper: {path}: neither a Perfetto trace nor ftrace text\n"
