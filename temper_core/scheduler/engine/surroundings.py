"""What of the machine an engine is held against: the kernel as it was before the start."""

import os
from contextlib import suppress

import structlog

from temper_core.scheduler.engine.leftovers import remove_stale_socket
from temper_core.scheduler.host.kernel import KernelLog, SchedExt
from temper_core.scheduler.host.roots import Roots

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class EngineEnvironment:
    """The kernel, its log and the engine's traces on one machine."""

    def __init__(self, roots: Roots, kernel_log: KernelLog, started_at: float) -> None:
        self.kernel = SchedExt(roots.sched_ext)
        self.log = kernel_log
        self.proc = roots.proc
        self.started_at = started_at
        self.enable_seq_before = self.kernel.read().enable_seq
        self._sysrq = roots.proc / "sysrq-trigger"
        self._socket = roots.stats_socket

    def remove_stale_socket(self) -> None:
        """Remove the socket that an ended engine leaves behind. One that is listened on stays."""
        remove_stale_socket(self._socket)

    def eject(self) -> None:
        """Have the kernel throw out whatever scheduler is attached (SysRq-S)."""
        log.warning("sysrq_used", trigger=str(self._sysrq))
        with suppress(OSError):
            descriptor = os.open(self._sysrq, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, b"S")
            finally:
                os.close(descriptor)
