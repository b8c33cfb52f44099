"""The state of watching, as it is published."""

from attrs import frozen

from temper_core import WakeWindow


@frozen
class WakeState:
    """The state of watching, which is requested until ``wanted_until`` (monotonic seconds).

    ``reason`` is why nothing can be watched. ``windows`` is the number of windows so far. They cost
    ``kernel_s`` in the threads that were running and ``own_s`` in this process.
    """

    wanted_until: float
    reason: str = ""
    window: WakeWindow | None = None
    windows: int = 0
    kernel_s: float = 0.0
    own_s: float = 0.0
    knows_interrupts: bool = False
