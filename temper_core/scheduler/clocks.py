"""Where the life cycle takes time and chance from. Tests give their own."""

import random
import time
from collections.abc import Callable

from attrs import frozen


@frozen
class Clocks:
    """Time and chance. ``monotonic`` serves ``close`` alone. ``step`` is told the time."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    chance: Callable[[], float] = random.random
