import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core import DocumentError
from temper_core.profiles.matching import matches
from temper_core.records.thread_groups import Behaviour, ThreadMatch
from temper_core.records.threads import ThreadBehaviour
from temper_plugin_trainer.thread_tables import (
    LEAST_LIFE_S,
    TableMachine,
    TableThread,
    ThreadTable,
    parse_thread_table,
    read_thread_table,
    thread_table_text,
)

SHARES = st.floats(0, 1).map(lambda value: round(value, 6))
COMMS = st.text(max_size=15).filter(lambda text: len(text.encode(errors="replace")) <= 15)
THREADS = st.builds(
    TableThread,
    comm=COMMS,
    process=COMMS,
    title=st.text(max_size=60),
    leader=st.booleans(),
    cpu_share=SHARES,
    wait_share=SHARES,
    wakeups_per_s=st.floats(0, 1e6),
    run_us=st.floats(0, 1e6),
    count=st.integers(1, 1_000_000),
    container=st.text(max_size=20),
    names=st.lists(COMMS, max_size=3).map(tuple),
    lived_share=st.floats(0.001, 1),
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)

KEYS = ["titles", *(each.name for each in ThreadTable.__attrs_attrs__)]


def table_of(*threads):
    machine = TableMachine(cores=2, threads_per_core=2)
    command = "scripts/record-servers/shop"
    return ThreadTable("shop", "1.2", command, machine, "6.12.0", 10.0, "2026-01-31", threads)


def problem_of(text):
    with pytest.raises(DocumentError) as caught:
        parse_thread_table(text, source="shop.json")
    (line,) = str(caught.value).splitlines()
    return line


def refusal_of(text):
    try:
        parse_thread_table(text, source="shop.json")
    except DocumentError as error:
        return str(error)
    return None


def changed(**changes):
    document = json.loads(thread_table_text(table_of(TableThread("shop", "shop"))))
    return json.dumps({**document, **changes})


@settings(max_examples=60)
@given(st.lists(THREADS, min_size=1, max_size=4))
def test_what_is_written_reads_back_as_it_was(threads):
    table = table_of(*threads)

    assert parse_thread_table(thread_table_text(table), source="shop.json") == table


def test_each_thread_is_one_line_that_leaves_out_defaults():
    text = thread_table_text(table_of(TableThread("shop", "shop", cpu_share=0.5)))

    assert '\n    {"comm": "shop", "process": "shop", "cpu_share": 0.5}\n' in text


@settings(max_examples=80)
@given(JSON_VALUES, st.sampled_from(KEYS))
def test_whatever_a_key_says_it_is_read_or_refused_in_one_line(value, key):
    said = refusal_of(changed(**{key: value}))

    assert said is None or (said.startswith("shop.json: ") and said.isprintable())


@settings(max_examples=60)
@given(st.text(max_size=80))
def test_any_text_that_is_no_table_is_refused_in_one_line(text):
    assert problem_of(text).startswith("shop.json: ")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"schema_version": 2}, "schema_version: must be in [1]"),
        ({"colour": "red"}, "document: unknown key 'colour'"),
        ({"seconds": 0}, "seconds: must be > 0"),
        ({"date": "yesterday"}, "date: must match regex"),
        ({"program": "Shop/1"}, "program: must match regex"),
        ({"threads": []}, "threads"),
        ({"titles": "shop"}, "titles: must be a list"),
        ({"machine": {"cores": 0}}, "machine.cores: must be >= 1: 0"),
        ({"threads": [{"comm": "a"}]}, "threads[0].process: is required"),
        ({"threads": [{"comm": "a", "process": "b" * 16}]}, "threads[0].process"),
        ({"threads": [{"comm": "ä" * 8, "process": "b"}]}, "threads[0].comm: must be at most 15"),
        ({"threads": [{"comm": "a", "process": "b", "count": True}]}, "must be a whole number"),
        ({"threads": [{"comm": "a", "process": "b", "cpu_share": 1.5}]}, "threads[0].cpu_share"),
    ],
)
def test_a_misfit_is_named_by_its_path(changes, problem):
    assert problem in problem_of(changed(**changes))


def test_a_title_of_many_threads_stands_in_the_file_once():
    rows = [TableThread(f"w-{n}", "shop", title="shop --fast") for n in range(3)]

    text = thread_table_text(table_of(*rows, TableThread("shop", "shop")))

    assert text.count("shop --fast") == 1
    assert '"comm": "w-2", "process": "shop", "title": 0}' in text


@pytest.mark.parametrize("title", [1, -1, True, 0.5, None])
def test_a_title_that_is_not_in_the_list_is_refused(title):
    row = {"comm": "a", "process": "b", "title": title}

    assert "title" in problem_of(changed(threads=[row], titles=["one"]))


def test_many_misfits_make_one_line_that_counts_the_others():
    rows = [{"comm": "a"}] * 1_000

    assert problem_of(changed(threads=rows)).endswith("(and 99 more)")


def test_a_value_as_long_as_a_novel_is_not_repeated_in_full():
    assert len(problem_of(changed(seconds="x" * 100_000))) < 300


def test_a_document_beyond_the_limit_is_refused_before_it_is_parsed():
    assert "is longer than" in problem_of(" " * 5_000_000)


def test_a_name_whose_bytes_were_no_text_counts_a_byte_each():
    row = {"comm": "\N{REPLACEMENT CHARACTER}" * 15, "process": "b"}

    table = parse_thread_table(changed(threads=[row]), source="shop.json")

    assert len(table.threads[0].comm) == 15


def test_a_pipe_is_refused_rather_than_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")

    with pytest.raises(DocumentError, match=r"pipe\.json: is not a regular file"):
        read_thread_table(tmp_path / "pipe.json")


def test_a_table_is_read_from_its_file(tmp_path):
    table = table_of(TableThread("shop", "shop", leader=True))
    (tmp_path / "shop.json").write_text(thread_table_text(table))

    assert read_thread_table(tmp_path / "shop.json") == table


def test_cpu_time_counts_alike_threads_and_how_long_they_lived():
    short = TableThread("job", "shop", cpu_share=0.5, lived_share=0.1, count=4)
    table = table_of(TableThread("shop", "shop", cpu_share=0.25), short)

    assert short.cpus_used == pytest.approx(0.2)
    assert table.cpus_used == pytest.approx(0.45)


def test_a_row_is_judged_by_its_behaviour_as_a_live_thread_is():
    row = TableThread("w", "shop", cpu_share=0.9, run_us=900.0, wakeups_per_s=1_000.0)
    busy = ThreadMatch(behaviour=Behaviour(cpu_share=(0.5, 1.0), run_us=(500.0, 1_000.0)))

    assert matches(busy, row.identity())


def test_a_row_that_never_ran_has_no_length_of_run():
    row = TableThread("w", "shop")

    assert row.identity().behaviour == ThreadBehaviour(0.0, None, 0.0)
    assert not matches(ThreadMatch(behaviour=Behaviour(run_us=(0.0, 9.0))), row.identity())


def test_a_row_is_judged_under_another_of_its_names_where_one_is_given():
    row = TableThread("w-0", "shop", leader=True, title="shop --fast", names=("w-1",))

    identity = row.identity("w-1")

    assert (identity.comm, identity.title, identity.is_leader) == ("w-1", "shop --fast", True)


def test_a_life_that_rounds_to_nothing_is_a_short_one():
    thread = TableThread("job", "shop", lived_share=5e-324)

    assert thread.lifetime(0.1).lasts_s == LEAST_LIFE_S
