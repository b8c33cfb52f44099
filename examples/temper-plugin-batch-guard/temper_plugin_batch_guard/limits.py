"""The table ``[plugins.batch-guard]``."""

from attrs import field, frozen
from attrs.validators import and_, ge, gt, le


@frozen
class Limits:
    """What counts as a batch job, and when it is in the way.

    ``profile`` is the profile that batch jobs get; ``names`` are patterns of pods' names that are
    batch jobs, beside what Kubernetes itself calls a Job. A service waits too long if it waits
    ``waiting`` of the time and more, while batch jobs use ``batch_cpus`` CPUs and more.
    """

    profile: str = "batch"
    names: tuple[str, ...] = ()
    waiting: float = field(default=0.1, validator=and_(gt(0.0), le(1.0)))
    batch_cpus: float = field(default=0.25, validator=ge(0.0))
