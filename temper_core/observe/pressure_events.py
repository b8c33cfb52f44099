"""PSI triggers, by which the kernel reports stalls, one for each resource of the node.

Format and rules: kernel/sched/psi.c (``psi_trigger_create``, ``psi_trigger_poll``) and
Documentation/accounting/psi.rst. A process without CAP_SYS_RESOURCE may use a window of 2 s. A
trigger fires once per window at most, and polling it resets the event.
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
"""Seconds without a wait for a CPU that make a calm. The wait after a calm raises the alarm."""
_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


class PressureEvents:
    """Counts the windows of 2 s in which tasks waited for 10 % of the time, by resource.

    One thread sleeps until a trigger fires. It calls ``alarm`` at the first wait for a CPU after a
    calm. ``defects`` names the triggers that could not be set.
    """

    def __init__(
        self, proc_root: Path | str = Path("/proc"), alarm: Callable[[], None] = lambda: None
    ) -> None:
        self._alarm = alarm
        self._resources: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._last_cpu_s = float("-inf")
        # Each counter is written by one thread only, so that no alarm is lost by a race.
        self._rings = self._rings_heard = 0
        self._thread: threading.Thread | None = None
        self._stop = -1
        self.defects: tuple[str, ...] = ()
        for resource in RESOURCES:
            self._set(resource, f"{proc_root}/pressure/{resource}")

    @property
    def counts(self) -> Mapping[str, int]:
        """Events so far, by resource. Resources without a trigger are missing."""
        return dict(self._counts)

    def rang(self) -> bool:
        """Return whether the alarm was called since the last call."""
        before, self._rings_heard = self._rings_heard, self._rings
        return self._rings_heard != before

    def listen(self) -> None:
        """Begin to count, if there is a trigger."""
        if self._resources and self._thread is None:
            self._stop = os.eventfd(0)
            self._thread = threading.Thread(target=self._count, name="pressure-events", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread and remove the triggers. The counts stay."""
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
        except FileNotFoundError:  # no PSI, which the reader of the averages reports
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
                    self._note(f"{resource}: the kernel removed the trigger")
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
    if os.fstat(descriptor).st_size:  # the kernel's files have size 0: this is a copy of a /proc
        raise OSError(errno.EOPNOTSUPP, "is no file of the kernel")
    os.write(descriptor, b"some %d %d\0" % (THRESHOLD_US, WINDOW_US))
