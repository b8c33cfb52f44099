import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.metrics.label_text import LONGEST_VALUE, escaped, label, readable, thread_group


@pytest.mark.parametrize(
    ("comm", "group"),
    [
        ("worker-17", "worker-*"),
        ("worker-4", "worker-*"),
        ("1_scheduler", "*_scheduler"),
        ("G1 Conc#0", "G1 Conc#*"),
        ("pool-12-thread-", "pool-*-thread-"),
        ("C2 Comp..hread0", "C2 Comp..hread*"),
        ("conn-7f3a9c01", "conn-*"),
        ("C1 CompilerThre", "C1 CompilerThre"),
        ("C12 x", "C* x"),
        ("T2", "T*"),
        ("1234", "*"),
        ("runc:[2:INIT]", "runc:[*:INIT]"),
        ("ib_log_writer", "ib_log_writer"),
        ("facade", "facade"),
        ("node2ded", "node*ded"),
        ("postgres", "postgres"),
        ("a\nb\x00c\u2028d", "a?b?c?d"),
        ("\udcff\udcfe", "??"),
        ("größe", "größe"),
        ("", "?"),
    ],
)
def test_threads_that_differ_in_numbers_have_one_name(comm, group):
    assert thread_group(comm) == group


@given(st.text(max_size=20), st.integers(0, 10**9))
def test_no_number_that_is_counted_up_makes_a_name_of_its_own(stem, number):
    assert thread_group(f"{stem} {number}") == thread_group(f"{stem} {number + 1}")


@given(st.text(max_size=400))
def test_a_readable_text_fits_on_one_line_and_is_no_longer_than_allowed(text):
    assert len(readable(text).splitlines()) <= 1
    assert len(readable(text)) == min(len(text), LONGEST_VALUE)


@given(st.text(max_size=30))
def test_a_label_can_be_read_back(text):
    written = re.fullmatch(r'name="((?:[^"\\\n]|\\.)*)"', label("name", text))

    assert written is not None
    unescaped = re.sub(
        r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), written[1], flags=re.DOTALL
    )
    assert unescaped == text


def test_bytes_that_are_not_utf8_do_not_reach_the_wire():
    assert escaped("a\udcffb").encode() == b"a?b"
