"""The result of a training as a document: ``result.json``, and the body of ``PUT /training``."""

from attrs import field, frozen
from attrs.validators import and_, deep_iterable, ge, instance_of, max_len

LONGEST_TEXT = 500
MOST_COMPARISONS = 100
MOST_LINES = 200


_TEXT = and_(instance_of(str), max_len(LONGEST_TEXT))
_LINES = deep_iterable(_TEXT, and_(instance_of(tuple), max_len(MOST_LINES)))
_COUNT = ge(0)


@frozen
class ArmResult:
    """One arm of a comparison.

    Attributes:
        change: What it is: the tier alone, the whole profile, or the parameter that differs.
        median: The median of its measurements, in the unit of the metric. None without any.
        spread: The difference between its largest and its smallest measurement, in that unit.
        others_wait: The CPUs that other pods waited for, as the median over its measurements.
            None if no observation was made in any of them.

    """

    change: str = field(validator=_TEXT)
    median: float | None = None
    spread: float | None = None
    others_wait: float | None = None


@frozen
class Comparison:
    """A candidate compared with another arm, block by block.

    Attributes:
        verdict: One of ``kept``, ``not shown``, ``no gain``, ``ended by a guard``, ``not in force``
            and ``out of time``.
        evidence: That of the sequential test, None if it is too large for a number.
        gain: The median over blocks, as a ratio: 0.1 is 10 % better. None without blocks.
        low: The lower end of the 95 % interval of the gain, None if it is unbounded.
        high: The upper end.
        why: What ended it early, empty if nothing did.

    """

    candidate: ArmResult
    against: ArmResult
    blocks: int = field(validator=_COUNT)
    verdict: str = field(validator=_TEXT)
    evidence: float | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = field(default="", validator=_TEXT)


@frozen
class TrainingResult:
    """The end of one training.

    Attributes:
        verdict: The verdict in one line.
        is_better: Whether a profile is better than the tier alone, which the confirmation showed.
        better: ``lower`` or ``higher``: which values of the metric are better.
        baseline: The median of the tier alone at the start, in the unit of the metric.
        noise: The deviation of these runs, as a ratio.
        stopped: Why the run ended early, empty if it did not.
        trials: Every candidate, in order.
        confirmation: The best profile against the tier alone, on fresh blocks.
        against_stock: The result against the stock scheduler.
        unknown: What could not be told.

    """

    workload: str = field(validator=_TEXT)
    profile: str = field(validator=_TEXT)
    pods: tuple[str, ...] = field(validator=_LINES)
    verdict: str = field(validator=_TEXT)
    is_better: bool
    metric: str = field(validator=_TEXT)
    unit: str = field(validator=_TEXT)
    better: str = field(validator=_TEXT)
    command: str = field(validator=_TEXT)
    mode: str = field(validator=_TEXT)
    engine: str = field(validator=_TEXT)
    machine: str = field(validator=_TEXT)
    kernel: str = field(validator=_TEXT)
    date: str = field(validator=_TEXT)
    measurements: int = field(validator=_COUNT)
    engines_used: int = field(validator=_COUNT)
    trials: tuple[Comparison, ...] = field(validator=max_len(MOST_COMPARISONS))
    baseline: float | None = None
    noise: float | None = None
    stopped: str = field(default="", validator=_TEXT)
    confirmation: Comparison | None = None
    against_stock: Comparison | None = None
    unknown: tuple[str, ...] = field(default=(), validator=_LINES)
