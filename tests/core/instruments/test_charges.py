import time

import pytest

from temper_core import InputError
from temper_core.instruments.charges import MOST_PARTS, InstrumentCharges
from temper_core.observe.overhead import OwnCost


def burn(cpu_s):
    until = time.thread_time() + cpu_s
    while time.thread_time() < until:
        pass


@pytest.fixture
def cost():
    found = OwnCost()
    yield found
    found.close()


def test_an_instrument_has_a_line_and_one_for_each_part(cost):
    charges = InstrumentCharges(cost.part)

    for part in ("", "rows", "kernel"):
        with charges("tracer", part):
            burn(0.01)

    lines = set(cost.take().cpu_ratio)
    sides = ("kernel", "user")
    names = ("instrument_tracer", "instrument_tracer_rows", "instrument_tracer_kernel")
    assert {f"{name}_{side}" for name in names for side in sides} <= lines


def test_parts_beyond_the_bound_count_as_none(cost):
    charges = InstrumentCharges(cost.part)

    for number in range(1000):
        with charges("tracer", f"part-{number}"):
            pass

    lines = [line for line in cost.take().cpu_ratio if line.startswith("instrument_")]
    assert len(lines) == 2 * (MOST_PARTS + 1)


def test_what_one_instrument_is_called_cannot_be_anothers_part(cost):
    charges = InstrumentCharges(cost.part)

    with pytest.raises(InputError, match="not a valid part"):
        charges("tracer", "rows_user")
    with charges("tracer", "rows"), charges("tracer-rows"):
        pass

    lines = {line for line in cost.take().cpu_ratio if line.endswith("_user")}
    assert {"instrument_tracer_rows_user", "instrument_tracer-rows_user"} <= lines


def test_what_the_agent_calls_is_the_instruments_and_its_part_not_both(cost):
    charges, began = InstrumentCharges(cost.part), time.monotonic()

    with charges("tracer"):
        burn(0.02)
        with charges("tracer", "rows"):
            burn(0.06)

    parts, window_s = cost.take().cpu_ratio, time.monotonic() - began
    whole = sum(value for name, value in parts.items() if name.startswith("instrument_"))
    assert whole * window_s == pytest.approx(0.08, abs=0.03)
