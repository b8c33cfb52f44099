"""What the linter has to say of the packs: nothing but what their README explains."""

import datetime as dt
import re

import pytest

from temper_core.profiles.lint import remarks_on
from temper_core.records.profile_evidence import Effect
from temper_core.records.traits import Traits
from tests.builtin_profiles.recorded import PACKS, ROOT

README = (ROOT / "plugins/builtin_profiles/README.md").read_text()
TABLE = README.partition("| warning | of | reason |")[2].partition("\n\n")[0]
ROWS = re.findall(r"^\| `([a-z_]+)` \| (.*?) \| .+ \|$", TABLE, re.MULTILINE)
EXPLAINED = {
    (code, pack)
    for code, packs in ROWS
    for pack in (PACKS if packs == "all" else re.findall(r"`([^`]+)`", packs))
}


def warnings(pack):
    return {(each.code, pack) for each in remarks_on(PACKS[pack], dt.date(2026, 11, 21))}


@pytest.mark.parametrize("pack", PACKS)
def test_every_warning_of_a_pack_is_explained(pack):
    assert warnings(pack) <= EXPLAINED


def test_nothing_is_explained_that_the_linter_does_not_say():
    assert set.union(*map(warnings, PACKS)) == EXPLAINED


@pytest.mark.parametrize("pack", PACKS)
def test_a_pack_claims_no_effect_that_nobody_measured(pack):
    evidence = PACKS[pack].evidence

    assert evidence.application
    assert evidence.effect is not None
    assert not evidence.before
    assert not evidence.after


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_a_pack_that_was_measured_and_does_not_help_ships_disabled(pack):
    is_no_help = pack.evidence.effect in (Effect.WITHIN_SPREAD, Effect.WORSE)

    assert not (is_no_help and pack.enabled)


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_a_pack_has_no_traits_that_nobody_measured(pack):
    assert pack.traits == Traits() or pack.evidence.effect is not Effect.NOT_MEASURED
