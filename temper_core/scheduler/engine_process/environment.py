"""The parts of the machine that an engine run reads: the kernel's state, its log and /proc."""

import os
from contextlib import suppress

import structlog

from temper_core.scheduler.engine_process.leftovers import remove_stale_socket
from temper_core.scheduler.host.kernel import KernelLog, SchedExt
from temper_core.scheduler.host.roots import Roots

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class EngineEnvironment:
    """The kernel, its log and the engine's files on one machine.

    ``enable_seq_before`` is the kernel's counter of attachments before the start.
    """

    def __init__(self, roots: Roots, kernel_log: KernelLog, started_at: float) -> None:
        self.kernel = SchedExt(roots.sched_ext)
        self.log = kernel_log
        self.proc = roots.proc
        self.started_at = started_at
        self.enable_seq_before = self.kernel.read().enable_seq
        self._sysrq = roots.proc / "sysrq-trigger"
        self._socket = roots.stats_socket

    def remove_stale_socket(self) -> None:
        """Remove the socket of an ended engine. A socket with a listener stays."""
        remove_stale_socket(self._socket)

    def eject(self) -> None:
        """Make the kernel eject any attached scheduler (SysRq-S)."""
        log.warning("sysrq_used", trigger=str(self._sysrq))
        with suppress(OSError):
            descriptor = os.open(self._sysrq, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, b"S")
            finally:
                os.close(descriptor)
