"""The kernel's own word that somebody waited: PSI triggers, one for each resource of the node.

Format and rules: kernel/sched/psi.c (``psi_trigger_create``, ``psi_trigger_poll``) and
Documentation/accounting/psi.rst. A window of 2 s is what a process without CAP_SYS_RESOURCE may
ask for. A trigger fires once per window at most, and being polled takes that back.
"""

import errno
import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from temper_core.observe.pressure import RESOURCES

THRESHOLD_US = 200_000
WINDOW_US = 2_000_000
CALM_S = 30.0
"""So long nobody must have waited for a CPU before the next wait is news."""
_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


class PressureEvents:
    """Counts how often tasks waited for 10 % of two seconds, by resource, since it was made.

    One thread sleeps until the kernel says so. The first wait for a CPU after a calm makes
    ``alarm`` be called, from that thread. ``defects`` says what cannot be told here.
    """

    def __init__(
        self, proc_root: Path | str = Path("/proc"), alarm: Callable[[], None] = lambda: None
    ) -> None:
        self._alarm = alarm
        self._resources: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._last_cpu_s = float("-inf")
        # Each is written by one thread alone, so that no ring is lost between two of its steps.
        self._rings = self._rings_heard = 0
        self._thread: threading.Thread | None = None
        self._stop = -1
        self.defects: tuple[str, ...] = ()
        for resource in RESOURCES:
            self._set(resource, f"{proc_root}/pressure/{resource}")

    @property
    def counts(self) -> Mapping[str, int]:
        """Events so far, by resource. Those without a trigger are missing."""
        return dict(self._counts)

    def rang(self) -> bool:
        """Return whether the alarm was called since this was last asked."""
        heard, self._rings_heard = self._rings_heard, self._rings
        return self._rings_heard != heard

    def listen(self) -> None:
        """Begin to count, if there is a trigger at all."""
        if self._resources and self._thread is None:
            self._stop = os.eventfd(0)
            self._thread = threading.Thread(target=self._count, name="pressure-events", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread and take the triggers back. The counts stay."""
        if self._thread is not None:
            os.eventfd_write(self._stop, 1)
            self._thread.join()
            os.close(self._stop)
            self._thread = None
        for descriptor in self._resources:
            os.close(descriptor)
        self._resources.clear()

    def _set(self, resource: str, path: str) -> None:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        except FileNotFoundError:  # no PSI at all, which whoever reads the averages says
            return
        except OSError as error:
            self._note(f"{resource}: {error.strerror}")
            return
        try:
            _write_trigger(descriptor)
        except OSError as error:
            os.close(descriptor)
            self._note(f"{resource}: {error.strerror}")
            return
        self._resources[descriptor] = resource
        self._counts[resource] = 0

    def _count(self) -> None:
        poll = select.poll()
        poll.register(self._stop, select.POLLIN)
        for descriptor in self._resources:
            poll.register(descriptor, select.POLLPRI)
        while True:
            for descriptor, events in poll.poll():
                if descriptor == self._stop:
                    return
                resource = self._resources[descriptor]
                if events & _GONE:
                    poll.unregister(descriptor)
                    self._note(f"{resource}: the kernel has taken the trigger away")
                else:
                    self._hear(resource)

    def _hear(self, resource: str) -> None:
        self._counts[resource] += 1
        if resource == "cpu":
            before_s, self._last_cpu_s = self._last_cpu_s, time.monotonic()
            if self._last_cpu_s - before_s >= CALM_S:
                self._rings += 1
                self._alarm()

    def _note(self, what: str) -> None:
        self.defects += (f"pressure events: {what}",)


def _write_trigger(descriptor: int) -> None:
    if os.fstat(descriptor).st_size:  # the kernel's have none: this is a copy of some /proc
        raise OSError(errno.EOPNOTSUPP, "no file of the kernel's own")
    os.write(descriptor, b"some %d %d\0" % (THRESHOLD_US, WINDOW_US))
