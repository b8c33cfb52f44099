"""A trial: a workload profile in force for some pods, for a while."""

from attrs import frozen


@frozen
class TrialState:
    """A trial as it stands.

    Attributes:
        owner: The instrument that began it, or who asked over HTTP.
        profile: The profile's id.
        pods: Their keys (``namespace/name``).
        until: When it expires, in wall-clock seconds.

    """

    id: str
    owner: str
    profile: str
    pods: tuple[str, ...]
    until: float
