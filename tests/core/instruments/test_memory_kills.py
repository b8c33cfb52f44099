"""Who has sent SIGKILL, by the kernel's count of processes killed for memory."""

import pytest

from temper_core.instruments.memory_kills import killer_in_words, memory_kills


def test_the_count_is_that_of_the_kernel(tmp_path):
    (tmp_path / "vmstat").write_text("nr_free_pages 7\noom_kill 3\ndrop_pagecache 0\n")

    assert memory_kills(tmp_path) == 3


@pytest.mark.parametrize("content", ["", "nr_free_pages 7\n", "oom_kill many\n"])
def test_a_kernel_that_does_not_count_says_nothing(tmp_path, content):
    (tmp_path / "vmstat").write_text(content)

    assert memory_kills(tmp_path) is None


def test_without_the_file_there_is_no_count(tmp_path):
    assert memory_kills(tmp_path) is None


@pytest.mark.parametrize(
    ("before", "after", "is_memory_named"),
    [(3, 3, False), (3, 4, True), (None, None, True), (None, 3, True), (3, None, True)],
)
def test_memory_is_ruled_out_only_by_equal_counts(before, after, is_memory_named):
    told = killer_in_words(before, after)

    assert told.startswith("sent by another process")
    assert told.endswith("as memory ran out") == is_memory_named
