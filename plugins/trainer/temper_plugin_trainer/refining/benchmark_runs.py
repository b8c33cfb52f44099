"""Runs a benchmark command, while a guard looks at the node."""

import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress

from attrs import frozen

from temper_core import InputError, MachineError
from temper_core.console import is_interrupted
from temper_plugin_trainer.refining.benchmark import Asked, Measured, read_result
from temper_plugin_trainer.refining.guardian import GROUP, Guardian
from temper_plugin_trainer.training.started_command import ended, started

LOOK_EVERY_S = 1.0
POLL_S = 0.05
LARGEST_OUTPUT_BYTES = 1 << 20


class RunInterruptedError(InputError):
    """Ctrl-C, SIGTERM or SIGHUP."""


class BenchmarkError(MachineError):
    """The benchmark failed, or took too long."""


class GuardError(Exception):
    """The node is not as it was: the reason ends the trial."""


@frozen
class Benchmark:
    """A command that measures, of at most *timeout_s* seconds. It runs without a shell."""

    command: str
    asked: Asked
    timeout_s: float

    def run(self, look: Callable[[], str], guardian: Guardian) -> Measured:
        """Run the command once, and call *look* every second. Its answer, if any, ends the run.

        Raises BenchmarkError, GuardError, and RunInterruptedError.
        """
        with tempfile.TemporaryFile() as output:
            try:
                with started(self.command, "--benchmark", output.fileno()) as pid:
                    guardian.tell(GROUP, str(pid))
                    status = self._waited(pid, look)
            finally:
                # Its number is another group's soon, which the guardian would end in its place.
                guardian.tell(GROUP)
            if status:
                raise BenchmarkError(f"the benchmark ended with {named(status)}")
            size = output.seek(0, os.SEEK_END)
            output.seek(max(0, size - LARGEST_OUTPUT_BYTES))
            text = output.read().decode(errors="replace")
        return read_result(text, self.asked)

    def _waited(self, pid: int, look: Callable[[], str]) -> int:
        """Wait for the end of the command. Return its exit code, or minus its signal."""
        begun = time.monotonic()
        look_at = begun + LOOK_EVERY_S
        while (status := ended(pid)) is None:
            if is_interrupted(POLL_S):
                raise RunInterruptedError("interrupted")
            now = time.monotonic()
            if now > begun + self.timeout_s:
                raise BenchmarkError(f"the benchmark took more than {self.timeout_s:g} s")
            if now > look_at:
                look_at = now + LOOK_EVERY_S
                if why := look():
                    raise GuardError(why)
        return status


def named(status: int) -> str:
    """Return how a command ended, by its exit code or minus its signal, in words."""
    if status > 0:
        return f"exit code {status}"
    with suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"
