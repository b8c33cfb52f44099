"""Pods that come and go: cgroups as a kubelet makes them, each with a program in it. Needs root."""

import subprocess
import sys
import threading
import time
import uuid
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Self

from attrs import define, field

UNIFIED = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
TENANT = Path(__file__).with_name("tenant.py")
EMPTY_WITHIN_S = 10.0


def unified_tree() -> Path:
    """Return the mount point of cgroup v2; raise SystemExit where there is none."""
    for path in UNIFIED:
        if (path / "cgroup.procs").exists():
            return path
    raise SystemExit("soak: no cgroup v2 is mounted below /sys/fs/cgroup")


@define
class Pod:
    """A cgroup with a process in it."""

    folder: Path
    process: "subprocess.Popen[bytes]"

    def end(self) -> None:
        """End the process and remove the cgroup."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        deadline = time.monotonic() + EMPTY_WITHIN_S
        while time.monotonic() < deadline and self.folder.exists():
            with suppress(OSError):
                self.folder.rmdir()
                self.folder.parent.rmdir()
            time.sleep(0.05)


def begin(top: Path, threads: int) -> Pod:
    """Start a pod of *threads* threads, which live for a second on average."""
    folder = top / f"pod{uuid.uuid4()}" / uuid.uuid4().hex.rjust(64, "0")
    folder.mkdir(parents=True)
    command = [sys.executable, str(TENANT), str(threads), "1.0"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    (folder / "cgroup.procs").write_text(str(process.pid))
    return Pod(folder, process)


@define
class Churn:
    """Keeps a number of pods, and replaces the oldest every few seconds, in a thread of its own."""

    pods: int
    threads: int
    every_s: float
    begun: int = 0
    _top: Path = field(init=False)
    _live: deque[Pod] = field(factory=deque, init=False)
    _ending: threading.Event = field(factory=threading.Event, init=False)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Self:
        """Start the pods."""
        self._top = unified_tree() / "kubepods" / "burstable"
        for _ in range(self.pods):
            self._begin()
        self._thread = threading.Thread(target=self._turn)
        self._thread.start()
        return self

    def _begin(self) -> None:
        self._live.append(begin(self._top, self.threads))
        self.begun += 1

    def _turn(self) -> None:
        while not self._ending.wait(self.every_s):
            self._begin()
            self._live.popleft().end()

    def __exit__(self, *_: object) -> None:
        """End all pods, and remove the folders that are empty then."""
        self._ending.set()
        self._thread.join()
        while self._live:
            self._live.pop().end()
        for folder in (self._top, self._top.parent):
            with suppress(OSError):
                folder.rmdir()
