"""A tier that fails for good gives way; one that fails now and then does not."""

import errno

import pytest

from temper_core.observe.lasting_reader import LastingReader
from temper_core.observe.thread_rows import ThreadRows
from temper_core.observe.threads import ProcThreads
from temper_core.observe.tiers import OpenedReader


class Failing:
    """Reads as it is told to, look by look: True is a look that fails."""

    tier = "bpf"

    def __init__(self, *looks):
        self.looks = list(looks)
        self.closed = False

    def snapshot(self, since):
        if self.looks and self.looks.pop(0):
            raise OSError(errno.ENOMEM, "Cannot allocate memory", "tier bpf")
        return ThreadRows(since + 1)

    def refresh_cgroups(self):
        pass

    def close(self):
        self.closed = True


def look(reader, times):
    for _ in range(times):
        try:
            reader.snapshot(0)
        except OSError:
            continue


def test_a_tier_that_keeps_failing_gives_way_and_says_why():
    failing = Failing(True, True, True)
    reader = LastingReader(OpenedReader(failing), ProcThreads)

    look(reader, 3)

    assert (reader.tier, failing.closed) == ("proc", True)
    assert reader.reason == ("bpf: 3 looks in a row failed, the last one: Cannot allocate memory")
    reader.snapshot(0)
    reader.close()


def test_failures_that_are_not_in_a_row_change_nothing():
    failing = Failing(True, True, False, True, True, False)
    reader = LastingReader(OpenedReader(failing, "why not a better one"), ProcThreads)

    look(reader, 6)

    assert (reader.tier, reader.reason) == ("bpf", "why not a better one")


def test_a_tier_that_was_asked_for_by_name_is_kept():
    reader = LastingReader(OpenedReader(Failing(*[True] * 9)), None)

    look(reader, 8)

    assert reader.tier == "bpf"
    with pytest.raises(OSError, match="Cannot allocate memory"):
        reader.snapshot(0)
