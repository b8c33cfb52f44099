"""The treatment of each kind of thread fits who waits for it."""

import pytest

from temper_core import Treatment
from temper_core.profiles.matching import matches
from temper_core.records.threads import ThreadBehaviour, ThreadIdentity
from tests.builtin_profiles.recorded import PACKS
from tests.builtin_profiles.who_waits import ALLOWED, ROWS, Waits


def treatment_of(row):
    thread = ThreadIdentity(
        "pod/", row.comm, row.process, is_leader=row.leads, title=row.title,
        parent=row.parent, is_child=row.is_child, age_s=row.age_s,
        behaviour=None if row.cpu_share is None else ThreadBehaviour(row.cpu_share),
    )  # fmt: skip
    for group in PACKS[row.pack].thread_groups:
        if not group.match or any(matches(match, thread) for match in group.match):
            return group.treatment
    return Treatment.NORMAL


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.pack} {row.comm} {row.title}".strip())
def test_a_thread_is_treated_as_those_need_who_wait_for_it(row):
    assert treatment_of(row) in ALLOWED[row.waits], row.why


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row.waits is Waits.PEER],
    ids=lambda row: f"{row.comm} {row.title}",
)
def test_a_peer_is_in_no_worse_place_than_the_requests_that_wait_for_it(row):
    serving = {
        treatment_of(each)
        for each in ROWS
        if each.waits is Waits.REQUEST and (each.pack, each.process) == (row.pack, row.process)
        if each.comm != each.process or each.leads
    }

    assert serving == {treatment_of(row)}


SERVERS_WITHOUT_NAMES = [
    row
    for row in ROWS
    if row.waits is Waits.REQUEST and row.comm == row.process and not row.leads
    if row.cpu_share is None
]


@pytest.mark.parametrize("row", SERVERS_WITHOUT_NAMES, ids=lambda row: row.process)
def test_a_server_that_names_no_thread_is_one_group_that_serves(row):
    assert treatment_of(row) in {Treatment.LATENCY, Treatment.BOOST}


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_exclusive_cores_are_never_more_than_the_request(pack):
    fractions = [
        group.cpu_fraction for group in pack.thread_groups if group.treatment is Treatment.EXCLUSIVE
    ]

    assert all(fraction < 1 for fraction in fractions)


def test_nothing_that_somebody_waits_for_may_yield():
    assert all(Treatment.YIELD not in ALLOWED[waits] for waits in set(Waits) - {Waits.NEVER})


@pytest.mark.parametrize("pack", PACKS)
def test_a_pack_that_was_not_measured_is_disabled(pack):
    assert not PACKS[pack].enabled
