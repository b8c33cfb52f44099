"""Pods that come and go: cgroups as a kubelet makes them, each with a program in it. Needs root."""

import json
import subprocess
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from attrs import define, field

UNIFIED = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
TENANT = Path(__file__).with_name("tenant.py")
EMPTY_WITHIN_S = 10.0
NAMESPACE = "soak"
PRIORITIES = (1_000_000, 0, -1000)
"""Of the pods by turns: critical, normal and background."""


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
    priority: int

    @property
    def uid(self) -> str:
        """The uid that its cgroup is named by."""
        return self.folder.parent.name.removeprefix("pod")

    def manifest(self) -> dict[str, object]:
        """Return the Pod object, as far as the agent reads it."""
        container = {"name": "app", "resources": {"requests": {"cpu": "10m"}}}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.uid, "namespace": NAMESPACE, "uid": self.uid},
            "spec": {"priority": self.priority, "containers": [container]},
            "status": {"phase": "Running", "qosClass": "Burstable"},
        }

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


def python_tenant(threads: int) -> list[str]:
    """Return the program of a pod, whose threads live for a second on average."""
    return [sys.executable, str(TENANT), str(threads), "1.0"]


def podlist(pods: Iterable[Pod]) -> str:
    """Return the pods as ``kubectl get pods -A -o json`` prints them."""
    return json.dumps({"kind": "List", "items": [pod.manifest() for pod in pods]})


def begin(top: Path, command: Sequence[str], priority: int = 0) -> Pod:
    """Start a pod that runs a command."""
    folder = top / f"pod{uuid.uuid4()}" / uuid.uuid4().hex.rjust(64, "0")
    folder.mkdir(parents=True)
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    (folder / "cgroup.procs").write_text(str(process.pid))
    return Pod(folder, process, priority)


@define
class Churn:
    """Keeps a number of pods, and replaces the oldest every few seconds, in a thread of its own.

    Each pod runs *command*. *list_file* gets a PodList of them, where it is given.
    """

    pods: int
    command: Sequence[str]
    every_s: float
    list_file: Path | None = None
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
        self._tell()
        self._thread = threading.Thread(target=self._turn)
        self._thread.start()
        return self

    def _begin(self) -> None:
        priority = PRIORITIES[self.begun % len(PRIORITIES)]
        self._live.append(begin(self._top, self.command, priority))
        self.begun += 1

    @property
    def middle(self) -> str:
        """A pod that has begun a while ago and goes on for a while, as ``namespace/name``."""
        return f"{NAMESPACE}/{self._live[self.pods // 2].uid}"

    def _tell(self) -> None:
        if self.list_file:
            written = self.list_file.with_suffix(".new")
            written.write_text(podlist(self._live))
            written.replace(self.list_file)

    def _turn(self) -> None:
        while not self._ending.wait(self.every_s):
            self._begin()
            self._live.popleft().end()
            self._tell()

    def __exit__(self, *_: object) -> None:
        """End all pods, and remove the folders that are empty then."""
        self._ending.set()
        self._thread.join()
        while self._live:
            self._live.pop().end()
        for folder in (self._top, self._top.parent):
            with suppress(OSError):
                folder.rmdir()
