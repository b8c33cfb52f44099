"""When a promise counts as broken in one window: the table ``[plugins.linter]``."""

from attrs import field, frozen
from attrs.validators import and_, ge, gt, le


@frozen
class Limits:
    """The thresholds.

    ``hot_cpu``
        CPUs from which on a thread counts as hot.
    ``noisy_cpu``
        CPUs of other layers' work from which on an SMT sibling counts as noisy.
    ``stray_ratio``
        Share of a layer's CPU use, or of its scheduling events, that may stray.
    ``idle_cpu``
        CPUs below which a layer uses too little to be judged by its share.
    ``missing_ratio``
        Share of the threads that belong in a layer, at least one, that the engine may not count
        there: real-time threads, and those that just ended.
    ``settle_windows``
        Windows that a new thread has to reach its layer.
    """

    hot_cpu: float = field(default=0.5, validator=and_(gt(0.0), le(1.0)))
    noisy_cpu: float = field(default=0.5, validator=and_(gt(0.0), le(1.0)))
    stray_ratio: float = field(default=0.05, validator=and_(gt(0.0), le(1.0)))
    idle_cpu: float = field(default=0.05, validator=ge(0.0))
    missing_ratio: float = field(default=0.1, validator=and_(ge(0.0), le(1.0)))
    settle_windows: int = field(default=2, validator=ge(0))
