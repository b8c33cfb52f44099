"""What the fullest of windows takes of memory."""

import gc
import tracemalloc

import pytest

from temper_core import Places
from temper_plugin_tracer.kernel import WindowCounts
from temper_plugin_tracer.kernel_records import PARTY, TID, Parties
from temper_plugin_tracer.roster import PartyRoster, ThreadCgroups
from temper_plugin_tracer.telling import tell_window
from tests.tracer.people import PLAN, a_snapshot, record, sample

MIB = 1 << 20
ROOM = 8_192
"""Threads of one window, at most."""
BATCH = 2_048


@pytest.fixture
def traced():
    """Count what Python has allocated since the beginning of the test."""

    def held():
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    yield held
    tracemalloc.stop()


def test_the_fullest_of_windows_is_told_without_a_copy_of_it(traced):
    parties = Parties(full_batches())
    packed = traced()
    tracemalloc.reset_peak()

    told = tell_window(
        WindowCounts(1.0, parties=parties),
        PartyRoster(parties, a_snapshot(sample(41)), Places(PLAN), ThreadCgroups("/nowhere")),
        at=0.0,
    )

    assert sum(told.waits[0].counts) == ROOM
    assert packed < 2.5 * MIB
    assert tracemalloc.get_traced_memory()[1] - packed < MIB


def full_batches():
    for first in range(1, ROOM, BATCH):
        tids = range(first, first + BATCH)
        records = [record(f"job-{tid}", tgid=tid, process=f"job-{tid}", waits=(1,)) for tid in tids]
        yield b"".join(map(TID.pack, tids)), b"".join(PARTY.pack(*each) for each in records)
