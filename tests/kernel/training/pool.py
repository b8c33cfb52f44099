"""A pod of one process: a pool of threads, and noisy threads of the same process (``pool.c``)."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from pod import CGROUP

NAME = "pool"
NOISY, NOISY_THREADS, WORKERS = "compact-", 3, 2
ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
STARTED_WITHIN_S = 60.0
PROFILE = f"""
schema_version = 1
id = "{NAME}"
[[thread_groups]]
name = "compaction"
match = [{{ comm_prefix = "{NOISY}" }}]
treatment = "yield"
[[thread_groups]]
name = "rest"
treatment = "normal"
"""


class Pod:
    """The process in its cgroup. *program* is the path of the compiled ``pool.c``."""

    def __init__(self, program: Path) -> None:
        CGROUP.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            ["sh", "-c", ENTER, CGROUP, program, str(NOISY_THREADS), str(WORKERS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        ends_at = time.monotonic() + STARTED_WITHIN_S
        while len(self.noisy()) < NOISY_THREADS or len(self.served()) < 1 + WORKERS:
            if time.monotonic() > ends_at:
                raise RuntimeError("the threads of the pool did not start")
            time.sleep(0.1)

    def noisy(self) -> list[int]:
        """Return the noisy threads."""
        return [tid for tid, comm in self._threads() if comm.startswith(NOISY)]

    def served(self) -> list[int]:
        """Return the threads that a request passes through."""
        return [tid for tid, comm in self._threads() if comm.startswith(("front", "worker-"))]

    def begin(self) -> None:
        """Begin the noise, and the measurement beside it."""
        os.write(self._process.stdin.fileno(), b"\n")  # type: ignore[union-attr]  # a pipe

    def result(self) -> float:
        """Return the mean time of a request in us, when the noise has ended."""
        return float(self._process.stdout.readline())  # type: ignore[union-attr]  # a pipe

    def end(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def _threads(self) -> Iterator[tuple[int, str]]:
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            yield int(task.name), (task / "comm").read_text().strip()
