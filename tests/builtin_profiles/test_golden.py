"""The packs on recordings of the real programs.

A golden file says which group takes which threads of a recording, steered and static. After a
change that is meant: ``REWRITE_GOLDENS=1 pytest tests/builtin_profiles/test_golden.py``, and read
the difference.
"""

import json
import os
import re
from fnmatch import fnmatch

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.profiles.matching import LONGEST_TITLE
from temper_plugin_trainer.coverage import judge
from temper_plugin_trainer.thread_tables import LONGEST_COMM, TableThread
from tests.builtin_profiles.recorded import (
    GOLDENS,
    PACKS,
    PAIRS,
    RECORDINGS,
    TESTED_ON,
    WITHOUT_PACK,
    golden_of,
    golden_path,
    recorded_for,
)

LEAST_COVERED = 0.9
INDEX = re.compile(r"(?<![A-Za-z0-9])[0-9]+|[0-9]+$|[0-9]{3,}")
"""Digits that number a thread; those of C2 or V8Worker are part of its name."""
FOREIGN = st.text("zqxj-_:#0123456789", min_size=1, max_size=LONGEST_COMM)

PACK_MATCH = {
    pack: {group.name: group.match for group in profile.thread_groups}
    for pack, profile in PACKS.items()
}


def each_pair(pairs):
    """Run a test for each pack and recording of *pairs*."""
    ids = [f"{pack}@{recording}" for pack, recording in pairs]
    return pytest.mark.parametrize(("pack", "recording"), pairs, ids=ids)


def is_bound(pack):
    """Whether every match of the pack names a process."""
    return all(match.process for matches in PACK_MATCH[pack].values() for match in matches)


both_of = each_pair(PAIRS)
bound_to_processes = each_pair([pair for pair in PAIRS if is_bound(pair[0])])


@both_of
def test_threads_fall_into_the_groups_of_the_golden_file(pack, recording):
    path = golden_path(pack, recording)
    found = golden_of(PACKS[pack], RECORDINGS[recording])

    if os.environ.get("REWRITE_GOLDENS"):
        path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")

    assert json.loads(path.read_text()) == found


@both_of
def test_groups_with_a_match_take_most_of_the_cpu_time(pack, recording):
    coverage = judge(PACKS[pack], RECORDINGS[recording])

    assert coverage.covered_share >= LEAST_COVERED
    assert coverage.is_about_version is not False


@both_of
def test_no_thread_changes_its_group_with_its_name(pack, recording):
    coverage = judge(PACKS[pack], RECORDINGS[recording])

    assert [each.thread for each in coverage.judged if each.others] == []


@both_of
@pytest.mark.parametrize("is_static", [False, True], ids=["steered", "static"])
@settings(max_examples=8, deadline=None)
@given(number=st.integers(0, 10**12))
def test_another_index_changes_no_group(pack, recording, is_static, number):
    table = RECORDINGS[recording]

    renumbered = evolve(table, threads=[numbered(each, str(number)) for each in table.threads])

    assert groups(pack, renumbered, is_static) == groups(pack, table, is_static)


@both_of
@pytest.mark.parametrize("is_static", [False, True], ids=["steered", "static"])
@settings(max_examples=8, deadline=None)
@given(comms=st.lists(FOREIGN, min_size=1, max_size=5))
def test_threads_of_foreign_names_change_nobodys_group(pack, recording, is_static, comms):
    table = RECORDINGS[recording]
    foreign = [TableThread(comm, process=comm) for comm in comms]

    crowded = evolve(table, threads=[*foreign, *table.threads])

    found = groups(pack, crowded, is_static)
    assert found[len(foreign) :] == groups(pack, table, is_static)
    assert all(name is None or not PACK_MATCH[pack][name] for name in found[: len(foreign)])


@bound_to_processes
@settings(max_examples=8, deadline=None)
@given(process=FOREIGN)
def test_no_match_takes_threads_of_the_same_names_in_a_foreign_process(pack, recording, process):
    table = RECORDINGS[recording]

    moved = evolve(table, threads=[evolve(each, process=process) for each in table.threads])

    assert judge(PACKS[pack], moved).covered_share == 0


def test_every_pack_is_tested_on_a_recording():
    assert [pack for pack in PACKS if not any(recorded_for(pack))] == []


def test_every_recording_tests_a_pack_or_says_why_there_is_none():
    globs = [*WITHOUT_PACK, *(glob for globs in TESTED_ON.values() for glob in globs)]

    assert [name for name in RECORDINGS if not any(fnmatch(name, glob) for glob in globs)] == []


def test_no_golden_file_outlives_its_pair():
    expected = {golden_path(pack, recording).name for pack, recording in PAIRS}

    assert {path.name for path in GOLDENS.iterdir()} == expected


def groups(pack, table, is_static):
    judged = judge(PACKS[pack], table, is_static=is_static).judged
    return [each.group.name if each.group else None for each in judged]


def numbered(thread, number):
    """Give *thread* another index wherever its names have one, cut like the kernel cuts them.

    Titles too: their numbers are addresses, ports and process ids.
    """
    renamed = evolve(
        thread,
        comm=cut(INDEX.sub(number, thread.comm)),
        names=[cut(INDEX.sub(number, name)) for name in thread.names],
        title=INDEX.sub(number, thread.title)[:LONGEST_TITLE],
    )
    # The leader's name is its process's.
    return evolve(renamed, process=renamed.comm) if thread.leader else renamed


def cut(name):
    return name.encode()[:LONGEST_COMM].decode(errors="ignore")
