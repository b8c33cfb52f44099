"""One engine from its start to the proof that the kernel has let go of it, step by step.

LOADING ─proven─▶ ATTACHED ─stop, silence, exit─▶ STOPPING ─▶ ENDED. Back from ATTACHED to LOADING
when the kernel detached it while the process lives on, as the engine does over CPU hotplug. The
stop ladder is SIGTERM, SIGKILL, and where the settings allow it SysRq-S; while it loads an engine
hears no SIGTERM and has attached nothing, so it is killed at once.
"""

import os
import socket
from contextlib import suppress
from enum import StrEnum

import structlog
from attrs import frozen

from temper_core.engine.stats import StatsClient
from temper_core.errors import EngineError
from temper_core.records.plans import Generation
from temper_core.scheduler.diagnosis import Diagnosis, End, EndKind, diagnose
from temper_core.scheduler.engine_process import EngineProcess
from temper_core.scheduler.kernel import KernelLog, KernelState, KernelWord, SchedExt
from temper_core.scheduler.proof import prove
from temper_core.scheduler.roots import Roots

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

KILL_S = 5.0
VERIFY_S = 5.0
LAST_WORDS_S = 0.5


class Phase(StrEnum):
    """Where an engine is in its life."""

    LOADING = "loading"
    ATTACHED = "attached"
    STOPPING = "stopping"
    ENDED = "ended"


class Rung(StrEnum):
    """The rungs of the stop ladder, in their order."""

    TERMINATE = "terminate"
    KILL = "kill"
    SYSRQ = "sysrq"
    NONE_LEFT = "none_left"


@frozen
class Limits:
    """How long each part of an engine's life may take, in seconds, and what may end it."""

    start_deadline_s: float = 60.0
    stop_deadline_s: float = 10.0
    stats_silence_s: float = 60.0
    sysrq: bool = False


class EngineRun:
    """One engine process of one generation; ``step`` moves it on and never waits.

    ``missing`` is the first thing the proof still lacks, ``problem`` what went wrong last on the
    way. ``diagnosis`` is set where it ended or failed without having been asked to. Moments are on
    the clock of ``step``; ``enabled_at`` and ``released_at`` are when the kernel was seen to take
    and to drop the scheduler.
    """

    def __init__(
        self,
        generation: Generation,
        process: EngineProcess,
        stats: StatsClient,
        surroundings: "Surroundings",
        limits: Limits,
    ) -> None:
        self.generation = generation
        self.process = process
        self.stats = stats
        self.phase = Phase.LOADING
        self.problem = ""
        self.missing = "just started"
        self.diagnosis: Diagnosis | None = None
        self.attached_at: float | None = None
        self.attach_count = 0
        self.enabled_at: float | None = None
        self.released_at: float | None = None
        self._surroundings = surroundings
        self._limits = limits
        self._layers = frozenset(layer.name for layer in generation.plan.layers)
        self._seq_before = surroundings.enable_seq_before
        self._deadline = surroundings.started_at + limits.start_deadline_s
        self._rung: Rung | None = None
        self._rung_until = 0.0
        self._exited_at: float | None = None
        self._was_asked = False

    def step(self, now: float) -> None:
        """Look at the process, its statistics and the kernel, and move on."""
        if self.phase is Phase.ENDED:
            return
        self._surroundings.log.drain(now)
        exit_code = self.process.exit_code
        kernel = self._surroundings.kernel.read()
        self._note_release(kernel, now)
        if exit_code is not None:
            self._after_exit(exit_code, kernel, now)
        elif self.phase is Phase.STOPPING:
            self._climb(kernel, now)
        elif kernel.is_known or self.phase is not Phase.ATTACHED:
            self._ask_statistics(kernel, now)
            self._judge(kernel, now)

    def stop(self, now: float) -> None:
        """Begin to end the engine; does nothing where that has begun already."""
        if self.phase in (Phase.STOPPING, Phase.ENDED):
            return
        has_attached = self.phase is Phase.ATTACHED or self._surroundings.kernel.read().is_layered
        self.phase = Phase.STOPPING
        if has_attached:
            self._enter(Rung.TERMINATE, now)
        else:
            self._enter(Rung.KILL, now)

    def _fail(self, kind: EndKind, summary: str, now: float) -> None:
        self.diagnosis = Diagnosis(kind, summary, self.process.errors[-2000:])
        self.stop(now)

    def _ask_statistics(self, kernel: KernelState, now: float) -> None:
        if not kernel.is_layered:
            return  # before that, only a stale socket could answer
        try:
            self.stats.step(now)
        except EngineError as error:
            self.problem = str(error)
        else:
            self.problem = ""

    def _judge(self, kernel: KernelState, now: float) -> None:
        proof = prove(
            kernel,
            enable_seq_before=self._seq_before,
            is_alive=True,
            layers_wanted=self._layers,
            layers_seen=self.stats.layer_names,
        )
        self.missing = next(iter(proof.missing), "")
        if self.phase is Phase.ATTACHED:
            self._watch(kernel, now)
        elif proof.is_complete:
            self.phase = Phase.ATTACHED
            self.attached_at = now
            self.attach_count += 1
            self.released_at = None
        elif now >= self._deadline:
            limit = f"within {self._limits.start_deadline_s:g} s"
            self._fail(EndKind.START_TIMEOUT, f"the engine did not attach {limit}: {proof}", now)
        if self.enabled_at is None and kernel.is_layered:
            self.enabled_at = now

    def _watch(self, kernel: KernelState, now: float) -> None:
        """Notice what neither the process nor its exit code tells of an attached engine."""
        if not kernel.is_layered:
            self.phase = Phase.LOADING
            self._deadline = now + self._limits.start_deadline_s
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

    def _climb(self, kernel: KernelState, now: float) -> None:
        """Go one rung up the ladder where the last one had its time."""
        if now < self._rung_until:
            return
        if self._rung is Rung.TERMINATE:
            self._enter(Rung.KILL, now)
        elif self._rung is Rung.KILL and self._limits.sysrq and not kernel.is_free:
            self._enter(Rung.SYSRQ, now)
        elif kernel.is_free and self._rung is not Rung.KILL:
            # The process may stay for ever, but it schedules nothing and runs no more code.
            log.error("engine_process_left_behind", pid=self.process.pid)
            self._end(now)
        else:
            self._enter(Rung.NONE_LEFT, now)

    def _enter(self, rung: Rung, now: float) -> None:
        self._rung = rung
        log.info("engine_stop_asked", rung=rung.value, pid=self.process.pid)
        if rung is Rung.TERMINATE:
            self._rung_until = now + self._limits.stop_deadline_s
            self.process.terminate()
            return
        self._rung_until = now + KILL_S
        if rung is Rung.SYSRQ:
            self._surroundings.eject()
            return
        if rung is Rung.NONE_LEFT:
            self.problem = (
                f"the engine (process {self.process.pid}) does not die by SIGKILL; "
                "`echo S > /proc/sysrq-trigger` ejects it ([scheduler] sysrq allows Temper to)"
            )
            log.error("engine_does_not_end", pid=self.process.pid)
        self.process.kill()

    def _after_exit(self, exit_code: int, kernel: KernelState, now: float) -> None:
        """Wait for the last words and for the kernel to let go; then it has ended."""
        self.phase = Phase.STOPPING
        if self._exited_at is None:
            self._exited_at = now
            self._was_asked = self._rung is not None
        waited = now - self._exited_at
        if not self.process.is_output_complete and waited < LAST_WORDS_S:
            return
        if not self._was_asked and self.diagnosis is None:
            self.diagnosis = self._diagnose(exit_code)
        if _has_let_go(kernel):
            self._end(now)
        elif waited >= VERIFY_S:
            self._insist(kernel, now)

    def _insist(self, kernel: KernelState, now: float) -> None:
        """Deal with a kernel that keeps a scheduler whose process is gone."""
        if self._limits.sysrq and kernel.is_known and self._rung is not Rung.SYSRQ:
            self._exited_at = now
            self._enter(Rung.SYSRQ, now)
            return
        log.error("scheduler_outlived_its_process", ops=kernel.ops)
        self._end(now)

    def _diagnose(self, exit_code: int) -> Diagnosis:
        return diagnose(
            End(
                exit_code=exit_code,
                errors=self.process.errors,
                log=self.process.log,
                kernel_log=self._surroundings.log.tail(),
                pid=self.process.pid,
            )
        )

    def _end(self, now: float) -> None:
        self.phase = Phase.ENDED
        self.released_at = self.released_at or now
        self.stats.close()
        self.process.close()
        self._surroundings.remove_stale_socket()


def _has_let_go(kernel: KernelState) -> bool:
    return kernel.is_free or (kernel.word is KernelWord.ENABLED and not kernel.is_layered)


class Surroundings:
    """What of the machine an engine is held against: the kernel as it was before the start."""

    def __init__(self, roots: Roots, kernel_log: KernelLog, started_at: float) -> None:
        self.kernel = SchedExt(roots.sched_ext)
        self.log = kernel_log
        self.started_at = started_at
        self.enable_seq_before = self.kernel.read().enable_seq
        self._sysrq = roots.proc / "sysrq-trigger"
        self._socket = roots.stats_socket

    def remove_stale_socket(self) -> None:
        """Remove the socket that an ended engine leaves behind; one that is listened on stays."""
        with socket.socket(socket.AF_UNIX) as probe, suppress(OSError):
            probe.setblocking(False)  # a hung listener is one, too
            try:
                probe.connect(str(self._socket))
            except ConnectionRefusedError:
                self._socket.unlink()

    def eject(self) -> None:
        """Have the kernel throw out whatever scheduler is attached (SysRq-S)."""
        log.warning("sysrq_used", trigger=str(self._sysrq))
        with suppress(OSError):
            descriptor = os.open(self._sysrq, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, b"S")
            finally:
                os.close(descriptor)
