"""The benchmark as the load of an observation: it runs again and again."""

import os
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from attrs import define, field

from temper_plugin_trainer.refining.benchmark_runs import Benchmark, BenchmarkError, named
from temper_plugin_trainer.refining.guardian import GROUP, Guardian
from temper_plugin_trainer.training.started_command import ended, started


@define
class BenchmarkLoad:
    """Runs *benchmark* from ``with`` on, and after its end again whenever ``keep_up`` is called."""

    benchmark: Benchmark
    guardian: Guardian
    _run: ExitStack = field(factory=ExitStack, init=False)
    _pid: int = field(default=0, init=False)

    def __enter__(self) -> Self:
        """Begin."""
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the run under way."""
        self._end()

    def keep_up(self) -> None:
        """Begin anew if the last run has ended. Raise BenchmarkError if it failed."""
        status = ended(self._pid)
        if status is None:
            return
        self._end()
        if status:
            raise BenchmarkError(f"the benchmark ended with {named(status)}")
        self._begin()

    def _begin(self) -> None:
        null = self._run.enter_context(open(os.devnull, "wb"))  # noqa: PTH123, SIM115 - closed below
        command = started(self.benchmark.command, "--benchmark", null.fileno())
        self._pid = self._run.enter_context(command)
        self.guardian.tell(GROUP, str(self._pid))

    def _end(self) -> None:
        self._run.close()
        self.guardian.tell(GROUP)
