"""How long a climb takes yet, at most."""

from attrs import frozen

from temper_plugin_trainer.refining.climb import CALIBRATIONS, CONFIRMATIONS, Plan, Visit

OF_A_BLOCK = 2
"""Measurements of one block."""
MINUTE_S = 60.0


@frozen
class Phase:
    """The part of a climb that a visit is of, with the most blocks that it has."""

    name: str
    blocks: int


def phase_of(plan: Plan, visit: Visit) -> Phase:
    """Return the phase of *visit*."""
    if not visit.trial:
        return Phase("the tier alone", CALIBRATIONS + 1)
    if plan.stock is not None and plan.stock.key in (visit.variant.key, visit.other):
        return Phase("the stock scheduler", plan.stock_blocks)
    if visit.is_confirmation:
        return Phase("the confirmation", CONFIRMATIONS)
    return Phase(f"trial {visit.trial}", plan.blocks)


def most_left_s(
    plan: Plan, visit: Visit, seconds_each: float, minutes_left: float | None = None
) -> float:
    """Return the most seconds from *visit* to the end, if each measurement takes as long.

    *minutes_left* are those of ``--minutes``. After them there is the confirmation alone, and the
    comparison with the stock scheduler.
    """
    phase = phase_of(plan, visit)
    stock = OF_A_BLOCK * plan.stock_blocks * seconds_each
    confirmation = OF_A_BLOCK * CONFIRMATIONS * seconds_each
    own = OF_A_BLOCK * (phase.blocks - visit.block) * seconds_each
    if plan.stock is not None and plan.stock.key in (visit.variant.key, visit.other):
        return own
    if visit.is_confirmation:
        return own + stock
    trials = OF_A_BLOCK * plan.blocks * (plan.trials - visit.trial) * seconds_each
    climb = own / OF_A_BLOCK + trials if not visit.trial else own + trials
    if minutes_left is not None:
        climb = min(climb, max(0.0, MINUTE_S * minutes_left))
    return climb + confirmation + stock
