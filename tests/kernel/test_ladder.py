"""A short form of the ladder: stock against the agent, without background and with eight spinners.

The clock is virtual, so the figures do not depend on the host's load (docs/ladder.md).
"""

import os
import subprocess

import pytest

from bench.ladder.rows import Row, read, rows
from tests.kernel.guest import CHECKOUT

SPINNERS = 8
STOCK_DELAY = 0.2
# Measured 0.0000 to 0.0010. The goal is 0.001.
OWN_DELAY = 0.01
# A client of an idle node that wakes later than this has a clock that is not to be trusted.
LATE_MS = 5.0


@pytest.fixture(scope="module")
def climbed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Row]:
    share = tmp_path_factory.mktemp("ladder")
    options = ("--arms", "stock,tiers", "--points", f"weight:0,{SPINNERS}", "--seeds", "1")
    ended = subprocess.run(
        [CHECKOUT / "bench/ladder/run", *options],
        env={**os.environ, "LADDER_SHARE": str(share)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return {(row.arm, row.level): row for row in rows(read([share / "records.jsonl"]))}


def delay(row: Row) -> float:
    spread = row.spread("delay")
    assert spread is not None
    return spread.median


def test_served_threads_wait_under_the_stock_scheduler(climbed):
    assert delay(climbed["stock", SPINNERS]) >= STOCK_DELAY


def test_served_threads_hardly_wait_under_the_agents_plan(climbed):
    assert delay(climbed["tiers", SPINNERS]) <= OWN_DELAY


def test_each_arm_keeps_its_scheduler_throughout(climbed):
    assert all(row.is_kept for row in climbed.values())


def test_every_request_is_answered(climbed):
    assert all(row.unanswered == 0 for row in climbed.values())


@pytest.mark.parametrize("arm", ["stock", "tiers"])
def test_the_clock_is_right(arm, climbed):
    assert all(each["client_late_ms"] < LATE_MS for each in climbed[arm, 0].records)
