"""The treatment of each kind of thread fits who waits for it."""

import pytest

from temper_core import Treatment
from temper_core.profiles.matching import matches
from temper_core.records.threads import ThreadIdentity
from tests.builtin_profiles.recorded import PACKS
from tests.builtin_profiles.who_waits import ALLOWED, ROWS, Waits


def treatment_of(row):
    thread = ThreadIdentity(
        "pod/", row.comm, row.process, is_leader=row.leads, title=row.title,
        parent=row.parent, is_child=row.is_child, age_s=row.age_s,
    )  # fmt: skip
    for group in PACKS[row.pack].thread_groups:
        if not group.match or any(matches(match, thread) for match in group.match):
            return group.treatment
    return Treatment.NORMAL


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.pack} {row.comm} {row.title}".strip())
def test_a_thread_is_treated_as_those_need_who_wait_for_it(row):
    assert treatment_of(row) in ALLOWED[row.waits], row.why


def test_nothing_that_somebody_waits_for_may_yield():
    assert all(Treatment.YIELD not in ALLOWED[waits] for waits in set(Waits) - {Waits.NEVER})


@pytest.mark.parametrize("pack", PACKS)
def test_a_pack_that_was_not_measured_is_disabled(pack):
    assert not PACKS[pack].enabled
