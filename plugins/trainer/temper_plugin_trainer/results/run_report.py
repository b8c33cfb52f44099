"""How far a training is, as its command reports it: the body of ``PUT /training/runs/{id}``."""

from attrs import field, frozen
from attrs.validators import and_, deep_iterable, ge, instance_of, max_len, optional

LONGEST_TEXT = 500
MOST_TRIALS = 100
MOST_PODS = 64

_TEXT = and_(instance_of(str), max_len(LONGEST_TEXT))
_COUNT = ge(0)


@frozen
class EndedTrial:
    """A trial that has ended. ``gain`` is a ratio: 0.1 is 10 % better."""

    change: str = field(validator=_TEXT)
    verdict: str = field(validator=_TEXT)
    gain: float
    blocks: int = field(validator=_COUNT)


@frozen
class RunReport:
    """The state of a training that runs.

    Attributes:
        phase: What is measured: the tier alone, a trial, the confirmation, the stock scheduler.
        arm: The arm that is measured, by what it changes.
        trial: The number of the trial, 0 before the first. ``trials`` is the most of them.
        block: The number of the block of this phase, from 1. ``blocks`` is the most of them.
        measured: Measurements so far.
        waiting: What the arm waits for. Empty while it is measured.
        left_s: The most seconds that the run takes yet, None while they are not known.
        ended: The trials that have ended, in order.
        is_over: Whether the run has ended.

    """

    workload: str = field(validator=_TEXT)
    profile: str = field(validator=_TEXT)
    pods: tuple[str, ...] = field(
        validator=deep_iterable(_TEXT, and_(instance_of(tuple), max_len(MOST_PODS)))
    )
    command: str = field(validator=_TEXT)
    metric: str = field(validator=_TEXT)
    trials: int = field(validator=_COUNT)
    phase: str = field(default="", validator=_TEXT)
    arm: str = field(default="", validator=_TEXT)
    trial: int = field(default=0, validator=_COUNT)
    block: int = field(default=0, validator=_COUNT)
    blocks: int = field(default=0, validator=_COUNT)
    measured: int = field(default=0, validator=_COUNT)
    engines_used: int = field(default=0, validator=_COUNT)
    waiting: str = field(default="", validator=_TEXT)
    left_s: float | None = field(default=None, validator=optional(ge(0.0)))
    ended: tuple[EndedTrial, ...] = field(default=(), validator=max_len(MOST_TRIALS))
    is_over: bool = False
