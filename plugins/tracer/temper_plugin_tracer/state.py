"""How the watching of wakes stands, as others may see it."""

from attrs import frozen

from temper_core import WakeWindow


@frozen
class WakeState:
    """How watching stands: until when it is wanted (monotonic seconds), and what is in the way.

    ``windows`` were watched so far, which cost ``kernel_s`` in whatever was running and ``own_s``
    in this process.
    """

    wanted_until: float
    reason: str = ""
    window: WakeWindow | None = None
    windows: int = 0
    kernel_s: float = 0.0
    own_s: float = 0.0
    knows_interrupts: bool = False
