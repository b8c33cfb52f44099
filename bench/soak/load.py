"""What asks the agent meanwhile: a scraper, a reader of observations, and captures of traces."""

import json
import subprocess
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from attrs import define, field

from temper_core import TemperError

TIMEOUT_S = 30
AT_ONCE = 24
"""More requests than all lanes have threads for."""

Asked = dict[str, tuple[float, Callable[[], object]]]
"""What is asked, by name: the seconds between two times, and the function that does it."""


@define
class Askers:
    """Calls functions at intervals, each in a thread of its own, and counts what came of them."""

    every_s: Asked
    answered: Counter[str] = field(factory=Counter, init=False)
    failed: Counter[str] = field(factory=Counter, init=False)
    _ending: threading.Event = field(factory=threading.Event, init=False)
    _threads: list[threading.Thread] = field(factory=list, init=False)

    def __enter__(self) -> Self:
        """Start to ask."""
        for name, (pause_s, ask) in self.every_s.items():
            thread = threading.Thread(target=self._turn, args=(name, pause_s, ask))
            thread.start()
            self._threads.append(thread)
        return self

    def _turn(self, name: str, pause_s: float, ask: Callable[[], object]) -> None:
        while not self._ending.wait(pause_s):
            try:
                ask()
            except (OSError, subprocess.SubprocessError, TemperError):
                self.failed[name] += 1
            else:
                self.answered[name] += 1

    def __exit__(self, *_: object) -> None:
        """Ask no more."""
        self._ending.set()
        for thread in self._threads:
            thread.join()


def read(address: str, path: str) -> bytes:
    """Read *path* from the agent; raise OSError where it does not answer."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=TIMEOUT_S) as answer:
        answered: bytes = answer.read()
    return answered


def start_lanes(address: str) -> None:
    """Ask so much at once that the agent starts all threads that answer. Some may be refused.

    A lane starts a thread when a request finds the others busy, and keeps it. Without this a rare
    coincidence of two requests is a step in memory and threads, at any time of a run.
    """
    asked = ("/metrics", "/observe", "/checks", "/flight-recorder") * AT_ONCE
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for path in asked:
            threads.submit(read, address, path)


def read_json(address: str, path: str) -> dict[str, Any]:
    """Return the agent's answer, an empty table while there is none."""
    try:
        return dict(json.loads(read(address, path)))
    except (OSError, ValueError):
        return {}


def capture(temper: Path, settings: Path) -> None:
    """Capture a second of the scheduler's events; raise CalledProcessError where that fails."""
    command = [temper, "trace", "capture", "--seconds", "1", "--mib", "4", "--settings", settings]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S)
