"""Pools that only behaviour tells: how far the host may differ from the one that was recorded."""

import pytest
from attrs import evolve

from temper_plugin_trainer.coverage import judge
from tests.builtin_profiles.recorded import PACKS, RECORDINGS, recorded_for

POOLS = [(pack, name) for pack in ("onnxruntime", "llama-cpp") for name in recorded_for(pack)]
BOUND = 0.05
"""The share of a CPU from which on a thread counts as one of the pool."""
of_each_pool = pytest.mark.parametrize(("pack", "recording"), POOLS)


def groups(pack, table):
    return [each.group.name for each in judge(PACKS[pack], table).judged]


def scaled(table, factor):
    """Give every thread *factor* times the CPU, as far as there is one."""
    rows = [evolve(each, cpu_share=min(1.0, each.cpu_share * factor)) for each in table.threads]
    return evolve(table, threads=rows)


@of_each_pool
@pytest.mark.parametrize("factor", [0.2, 0.5, 3, 10])
def test_a_host_that_is_busier_or_idler_than_the_recorded_one_changes_no_group(
    pack, recording, factor
):
    table = RECORDINGS[recording]

    assert groups(pack, scaled(table, factor)) == groups(pack, table)


@of_each_pool
def test_a_pool_is_all_that_computes_and_nothing_else(pack, recording):
    judged = judge(PACKS[pack], RECORDINGS[recording]).judged

    shares = {"inference": [], "rest": []}
    for each in judged:
        shares[each.group.name].append(each.thread.cpu_share)

    assert min(shares["inference"]) > 50 * max(shares["rest"])


@pytest.mark.parametrize("program", ["onnxruntime", "llama-server", "numpy", "pytorch"])
def test_no_thread_of_a_program_with_a_pool_was_ever_near_the_bound(program):
    tables = [table for table in RECORDINGS.values() if table.program == program]

    near = [
        each.comm
        for table in tables
        for each in table.threads
        if BOUND / 4 < each.cpu_share < BOUND * 2
    ]
    assert tables
    assert near == []


def test_a_program_that_computes_in_another_process_is_not_taken_for_the_pool():
    [busy, *_] = RECORDINGS["numpy-2.4.6-openblas"].threads
    table = RECORDINGS["llama-server-0.5.0-dev"]

    beside = evolve(table, threads=[busy, *table.threads])

    assert groups("llama-cpp", beside)[0] == "rest"
