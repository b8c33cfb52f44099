"""The table ``[plugins.batch-guard]``."""

from attrs import frozen
from attrs.validators import and_, ge, gt, le

from temper_core import setting


@frozen
class Limits:
    """The conditions for a batch job and for a finding."""

    profile: str = setting("batch", "The profile that batch jobs get.")
    names: tuple[str, ...] = setting(
        (), "Patterns of pods' names that are batch jobs, beside what Kubernetes calls a Job."
    )
    waiting: float = setting(
        0.1,
        "Share of its time from which on a service waits too long for a CPU.",
        validator=and_(gt(0.0), le(1.0)),
    )
    batch_cpus: float = setting(
        0.25, "CPUs that batch jobs use together for them to be in the way.", validator=ge(0.0)
    )
