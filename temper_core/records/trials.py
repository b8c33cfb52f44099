"""A trial: a workload profile in force for some pods, for a while."""

from attrs import frozen


@frozen
class TrialState:
    """The state of a trial.

    Attributes:
        owner: The instrument that began it, or the sender of the HTTP request.
        profile: The profile's id.
        pods: Their keys (``namespace/name``).
        until: Its expiry in wall-clock seconds.

    """

    id: str
    owner: str
    profile: str
    pods: tuple[str, ...]
    until: float
