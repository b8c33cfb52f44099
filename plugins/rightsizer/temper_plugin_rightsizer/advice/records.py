"""Records of advice."""

from enum import StrEnum

from attrs import field, frozen

KEEP = "keep as it is"
"""The reason of an advice that changes nothing."""


class Verdict(StrEnum):
    """Whether a container's threads can share cores."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"


class Confidence(StrEnum):
    """How far the measured time supports the advice."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@frozen
class Resources:
    """Requests and limits of one container. None is unset, or unknown for ``memory_*``."""

    cpu_request_millis: int | None = None
    cpu_limit_millis: int | None = None
    memory_request_bytes: int | None = None
    memory_limit_bytes: int | None = None


@frozen
class Leak:
    """A working set that grows without end.

    ``until_limit_s`` is the time until it meets the memory limit at the present rate. None without
    a limit.
    """

    bytes_per_hour: int
    until_limit_s: int | None


@frozen
class Advice:
    """The advised requests of a container, and the reasons.

    ``recommended`` has None where nothing is recommended. ``keeps`` is true if the advice is to
    keep everything as it is. ``hot_threads`` are the name families of the threads that need a core
    each, the busiest first. ``hot_cores`` is the number of these threads. ``learned_s`` is the
    measured time. ``reasons`` are sentences with the numbers that the advice follows from. ``leak``
    is a growth of memory that no request covers.
    """

    verdict: Verdict
    current: Resources
    recommended: Resources
    confidence: Confidence
    learned_s: int
    keeps: bool = False
    hot_threads: tuple[str, ...] = ()
    reasons: tuple[str, ...] = field(default=())
    leak: Leak | None = None
    hot_cores: int = 0
