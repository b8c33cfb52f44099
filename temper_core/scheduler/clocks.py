"""The life cycle's sources of time and randomness. Tests pass their own."""

import random
import time
from collections.abc import Callable

from attrs import frozen


@frozen
class Clocks:
    """Sources of time and randomness. Only ``close`` uses ``monotonic``: ``step`` takes *now*."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    chance: Callable[[], float] = random.random
