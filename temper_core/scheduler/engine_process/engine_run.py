"""One engine's run, from its start to the proof that the kernel has released it.

    LOADING ─proven─▶ ATTACHED ─stop, silence, exit─▶ STOPPING ─▶ ENDED            (cold)
    LOADING ─▶ WAITING ─gate opened─▶ ATTACHING ─proven─▶ ATTACHED …               (gated)

It returns from ATTACHED to LOADING if the kernel detached it while the process lives on, as the
engine does after CPU hotplug. An engine handles no SIGTERM while it loads, and has attached nothing
while it loads or waits. So it is then killed at once. Until its gate is opened, the scheduler in
the kernel is another engine's: it counts for no proof and is not waited for.
"""

from enum import StrEnum

import structlog
from attrs import frozen

from temper_core.engine.stats import StatsClient
from temper_core.errors import EngineError
from temper_core.records.plans import Generation
from temper_core.scheduler.engine_process.environment import EngineEnvironment
from temper_core.scheduler.engine_process.gate import FREE, GateError
from temper_core.scheduler.engine_process.process import EngineProcess
from temper_core.scheduler.engine_process.proof import layer_names, prove
from temper_core.scheduler.engine_process.start_deadline import StartDeadline, cpu_seconds
from temper_core.scheduler.engine_process.stop_ladder import Rung, StopLadder
from temper_core.scheduler.failure.diagnosis import (
    Diagnosis,
    End,
    EndKind,
    diagnose,
    ejection,
)
from temper_core.scheduler.host.kernel import KernelState
from temper_core.scheduler.pre_exec_script import NO_GATE

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

VERIFY_S = 5.0
LAST_WORDS_S = 0.5
NEXT_ARRIVAL_S = 1.0
"""An engine needs at least this long to reach its gate again, because it loads in between."""

LET_THROUGH_IDLE_S = 30.0
"""The idle limit after the gate opens: the node runs the stock scheduler until it attaches."""


class EnginePhase(StrEnum):
    """The phases of an engine's life."""

    LOADING = "loading"
    WAITING = "waiting"
    ATTACHING = "attaching"
    ATTACHED = "attached"
    STOPPING = "stopping"
    ENDED = "ended"


@frozen
class Limits:
    """The limits of an engine's phases, in seconds, and whether SysRq-S may end it."""

    start_deadline_s: float = 60.0
    stop_deadline_s: float = 10.0
    stats_silence_s: float = 60.0
    sysrq: bool = False


class EngineRun:
    """One engine process of one generation. ``step`` advances it and never waits.

    ``missing`` is the first condition the proof lacks, ``problem`` the last error. ``diagnosis``
    is set if the engine ended or failed without a request, or was ejected while it stopped.
    ``gate_refusal`` is set if it ended only because no gate could be mounted. Times are on the
    clock of ``step``. ``enabled_at`` and ``released_at`` are the times at which the kernel was
    seen to take and to drop the scheduler. ``predecessor`` is the engine before this one, until
    its process has ended. ``has_successor`` means that another engine has replaced this one.
    """

    def __init__(
        self,
        generation: Generation,
        process: EngineProcess,
        stats: StatsClient,
        surroundings: EngineEnvironment,
        limits: Limits,
    ) -> None:
        self.generation = generation
        self.process = process
        self.stats = stats
        self.phase = EnginePhase.LOADING
        self.missing = "just started"
        self.diagnosis: Diagnosis | None = None
        self.gate_refusal = ""
        self.attached_at: float | None = None
        self.attach_count = 0
        self.enabled_at: float | None = None
        self.released_at: float | None = None
        self.predecessor: EngineRun | None = None
        self.has_successor = False
        self.deadline = StartDeadline(limits.start_deadline_s, surroundings.started_at)
        self._surroundings = surroundings
        self._limits = limits
        self._ladder = StopLadder(
            process,
            surroundings,
            terminate_s=limits.stop_deadline_s,
            allows_sysrq=limits.sysrq,
        )
        self._problem = ""
        self._layers = layer_names(generation.config)
        self._seq_before = surroundings.enable_seq_before
        self._opened_at: float | None = None
        self._is_in_kernel = False
        self._stopped_in_kernel = False
        self._saw_release = False
        self._exited_at: float | None = None
        self._was_asked = False

    @property
    def problem(self) -> str:
        """The last error of the run, empty without one."""
        return self._ladder.problem or self._problem

    @property
    def is_gated(self) -> bool:
        """Whether it was started behind a gate."""
        return self.process.gate is not None

    @property
    def is_held_back(self) -> bool:
        """Whether a gate that was never opened keeps it from the kernel."""
        return self.is_gated and self._opened_at is None

    @property
    def is_let_through(self) -> bool:
        """Whether its gate was opened but the kernel has not been seen to take it yet."""
        return self.phase is EnginePhase.ATTACHING and self.enabled_at is None

    @property
    def has_let_go(self) -> bool:
        """Whether the kernel runs nothing of this engine and never will again.

        This is known before the process has ended only if it was attached when it was stopped.
        """
        return self._saw_release or self.phase is EnginePhase.ENDED or self.is_held_back

    @property
    def is_stuck(self) -> bool:
        """Whether every rung of the stop ladder failed."""
        return self._ladder.is_exhausted and not self.has_let_go

    def step(self, now: float) -> None:
        """Read the process, its statistics and the kernel, and advance the phase."""
        if self.phase is EnginePhase.ENDED:
            return
        self._surroundings.log.drain(now)
        exit_code = self.process.exit_code
        kernel = self._surroundings.kernel.read()
        self._note_release(kernel, now)
        if exit_code is not None:
            self._after_exit(exit_code, kernel, now)
        elif self.phase is EnginePhase.STOPPING:
            if self._ladder.climb(now, is_out=self.has_let_go or kernel.is_free):
                self._end(now)
        elif self.is_held_back:
            self._approach_gate(now)
        elif kernel.is_known or self.phase is not EnginePhase.ATTACHED:
            self._ask_statistics(kernel, now)
            self._judge(kernel, now)

    def open_gate(self, now: float, predecessor: "EngineRun") -> None:
        """Let a waiting engine attach in *predecessor*'s place. The kernel must be free.

        Raises ValueError if the engine is not waiting at a gate.
        """
        gate = self.process.gate
        if gate is None or self.phase is not EnginePhase.WAITING:
            raise ValueError(f"the engine is {self.phase}, not at a gate")
        self._seq_before = self._surroundings.kernel.read().enable_seq
        self._opened_at = now
        self.phase, self.missing = EnginePhase.ATTACHING, "its gate was opened"
        self.predecessor = predecessor
        predecessor.has_successor = True
        try:
            gate.open(FREE)
        except GateError as error:
            self._fail(EndKind.UNKNOWN, str(error), now)
        self.process.take_over()
        self.deadline.restart(now, idle_s=LET_THROUGH_IDLE_S)

    def stop(self, now: float) -> None:
        """Begin to end the engine. Does nothing if that has begun already."""
        if self.phase in (EnginePhase.STOPPING, EnginePhase.ENDED):
            return
        is_attached = (
            self.phase is EnginePhase.ATTACHED or self._surroundings.kernel.read().is_layered
        )
        self._stopped_in_kernel = is_attached and not self.is_held_back
        self.phase = EnginePhase.STOPPING
        self._ladder.enter(Rung.TERMINATE if self._stopped_in_kernel else Rung.KILL, now)

    def _fail(self, kind: EndKind, summary: str, now: float) -> None:
        self.diagnosis = Diagnosis(kind, summary, self.process.errors[-2000:])
        self.stop(now)

    def _approach_gate(self, now: float) -> None:
        """Check whether it has loaded. Time at the gate does not count against its deadline."""
        if self.phase is EnginePhase.WAITING:
            return
        try:
            is_there = self.process.gate is not None and self.process.gate.look()
        except GateError as error:
            self._fail(EndKind.UNKNOWN, str(error), now)
            return
        if is_there:
            self.phase = EnginePhase.WAITING
            self.missing = "the engine before it has to stop"
        else:
            self.missing = "it is being verified"
            self._watch_deadline(now, self.missing, is_loading=True)

    def _let_through_again(self, kernel: KernelState, now: float) -> None:
        """Pass the kernel's true state to an engine that restarts in place behind its gate."""
        gate, opened_at = self.process.gate, self._opened_at
        if gate is None or opened_at is None or now - opened_at < NEXT_ARRIVAL_S:
            return
        if not kernel.is_without_us:
            return
        try:
            if gate.look():
                self._opened_at = now
                gate.open(FREE if kernel.is_free else kernel.word.value)
        except GateError as error:
            self._fail(EndKind.UNKNOWN, str(error), now)

    def _ask_statistics(self, kernel: KernelState, now: float) -> None:
        if not kernel.is_layered or self._is_socket_anothers():
            return
        try:
            self.stats.step(now)
        except EngineError as error:
            self._problem = str(error)
        else:
            self._problem = ""

    def _is_socket_anothers(self) -> bool:
        """Whether the engine before this one may still answer, because it has not ended yet."""
        before = self.predecessor
        if before is None:
            return False
        if before.phase is EnginePhase.ENDED or before.process.exit_code is not None:
            self.predecessor = None
        return self.predecessor is not None

    def _judge(self, kernel: KernelState, now: float) -> None:
        proof = prove(
            kernel,
            enable_seq_before=self._seq_before,
            is_alive=True,
            layers_wanted=self._layers,
            layers_seen=self.stats.layer_names,
        )
        self.missing = next(iter(proof.missing), "")
        self._note_attachment(kernel, now)
        if self.phase is EnginePhase.ATTACHED:
            self._watch(kernel, now)
        elif proof.is_complete:
            self.phase = EnginePhase.ATTACHED
            self.attached_at = now
            self.attach_count += 1
            self.released_at = None
        else:
            self._let_through_again(kernel, now)
            self._watch_deadline(now, str(proof), is_loading=not kernel.is_layered)

    def _note_attachment(self, kernel: KernelState, now: float) -> None:
        if kernel.is_layered and self.enabled_at is None:
            self.enabled_at = now
        if kernel.is_layered and not self._is_in_kernel:
            self.deadline.restart(now)
        self._is_in_kernel = kernel.is_layered

    def _watch_deadline(self, now: float, missing: str, *, is_loading: bool) -> None:
        """End a start that takes too long. CPU time of an attached engine is no progress."""
        cpu_s = cpu_seconds(self.process.pid, self._surroundings.proc) if is_loading else None
        self.deadline.look(now, cpu_s)
        excess = self.deadline.passed(now)
        if excess:
            self._fail(
                EndKind.START_TIMEOUT, f"the engine did not attach, {excess}: {missing}", now
            )

    def _watch(self, kernel: KernelState, now: float) -> None:
        """Detect a detached or silent engine whose process still runs."""
        if not kernel.is_layered:
            self.phase = EnginePhase.LOADING
            self.deadline.restart(now)
            self._seq_before = kernel.enable_seq
            self.stats.close()
            return
        asked_at = self.stats.unanswered_since
        if asked_at is not None and now - asked_at > self._limits.stats_silence_s:
            silence = f"for {self._limits.stats_silence_s:g} s"
            self._fail(EndKind.HUNG, f"the engine gave no statistics {silence}", now)

    def _note_release(self, kernel: KernelState, now: float) -> None:
        is_gone = kernel.is_known and not kernel.is_layered
        if self.released_at is None and self.enabled_at is not None and is_gone:
            self.released_at = now
        if self._stopped_in_kernel and kernel.is_free and not self._saw_release:
            self._saw_release = True
            self._note_ejection()

    def _note_ejection(self) -> None:
        """Diagnose an ejection of an engine that was asked to stop. At the last rungs it is due.

        Linux 6.12 to 6.18 log the reason before the state becomes ``disabled``.
        """
        is_due = self._ladder.rung in {Rung.SYSRQ, Rung.NONE_LEFT}
        if self._stopped_in_kernel and self.diagnosis is None and not is_due:
            self.diagnosis = ejection(self._evidence())

    def _after_exit(self, exit_code: int, kernel: KernelState, now: float) -> None:
        """Wait for the rest of the output and for the kernel's release, then end."""
        self.phase = EnginePhase.STOPPING
        if self._exited_at is None:
            self._exited_at = now
            self._was_asked = self._ladder.rung is not None
        waited = now - self._exited_at
        if not self.process.is_output_complete and waited < LAST_WORDS_S:
            return
        if not self._was_asked and self.diagnosis is None:
            self.diagnosis = self._diagnose(exit_code)
        if self.has_let_go or kernel.is_without_us:
            self._end(now)
        elif waited >= VERIFY_S:
            self._insist(kernel, now)

    def _insist(self, kernel: KernelState, now: float) -> None:
        """Eject, if allowed, a scheduler that the kernel keeps after its process ended."""
        may_eject = self._ladder.allows_sysrq and self._ladder.rung is not Rung.SYSRQ
        if may_eject and kernel.is_known:
            self._exited_at = now
            self._ladder.enter(Rung.SYSRQ, now)
            return
        log.error("scheduler_outlived_its_process", ops=kernel.ops)
        self._end(now)

    def _diagnose(self, exit_code: int) -> Diagnosis:
        if self.is_held_back and exit_code in NO_GATE:
            error = self.process.errors.strip().removeprefix("temper: ")
            self.gate_refusal = error or f"the launcher ended with {exit_code}"
        return diagnose(self._evidence(exit_code))

    def _evidence(self, exit_code: int = 1) -> End:
        return End(
            exit_code=exit_code,
            errors=self.process.errors,
            log=self.process.log,
            kernel_log=self._surroundings.log.tail(),
            pid=self.process.pid,
        )

    def _end(self, now: float) -> None:
        is_last = not self.has_successor and not self.is_held_back
        self.phase = EnginePhase.ENDED
        self.released_at = self.released_at or now
        self.predecessor = None
        self.stats.close()
        self.process.close()
        if is_last:
            self._surroundings.remove_stale_socket()
