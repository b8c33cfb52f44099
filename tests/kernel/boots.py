"""Count the guests that are lost: ``python -m tests.kernel.boots [--boots N] [--cpus N]``.

Each boot attaches an engine, and swaps it for another that loads beside it. A guest that dies is
lost, whatever it died of: it is not booted again.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from tests.kernel.guest import ATTACH_AND_SWAP, DEMO, PYTHON, Walked, walk_in_guest

DIED, TIME_IS_UP = 125, 124
GUEST_S = 3600
FROM_THE_END = 80


@frozen
class Boot:
    """One guest from its first to its last second."""

    walked: Walked
    seconds: float

    @property
    def is_lost(self) -> bool:
        """Whether the guest did not live until the end of its walk."""
        return self.walked.exit_code in (DIED, TIME_IS_UP)

    @property
    def missing(self) -> list[str]:
        """The claims of the walk that did not hold, or that it did not come to."""
        held = {name for name, outcome in self.walked.outcomes.items() if outcome.holds}
        return [name for name in ATTACH_AND_SWAP if name not in held]

    def __str__(self) -> str:
        if self.is_lost:
            return f"LOST, exit code {self.walked.exit_code}"
        return f"without {', '.join(self.missing)}" if self.missing else "attached and swapped"


def main() -> None:
    """Boot one guest after the other; exit with 1 where one was lost or did not swap."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boots", type=int, default=20)
    parser.add_argument("--cpus", type=int, default=8)
    options = parser.parse_args()
    boots = []
    for boot in _boots(options.boots, options.cpus):
        boots.append(boot)
        _tell(f"{len(boots):3} of {options.boots}: {boot}, {boot.seconds:.0f} s")
        if boot.is_lost or boot.missing:
            _tell("\n".join(boot.walked.output.splitlines()[-FROM_THE_END:]))
    lost = sum(boot.is_lost for boot in boots)
    swapped = sum(not boot.missing for boot in boots)
    _tell(f"{len(boots)} boots, {lost} lost, {swapped} attached and swapped")
    sys.exit(lost > 0 or swapped < len(boots))


def _boots(count: int, cpus: int) -> Iterator[Boot]:
    machine = ("--once", "--cpus", str(cpus), "--timeout", str(GUEST_S))
    program = (*PYTHON, DEMO, "--walk", "swap", "--patient")
    for _ in range(count):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as share:
            walked = walk_in_guest(Path(share), machine, program)
        yield Boot(walked, time.monotonic() - began)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
