"""A trial load: an engine loads a configuration into this kernel behind a gate that stays closed.

The kernel's verifier checks every program, as in a start, but nothing is attached. An engine that
schedules already is not touched, and nothing of this one remains.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from temper_core.engine.dry_run import DryRun, DryRunStage, one_line, refusal, with_hint_map
from temper_core.errors import EngineError
from temper_core.scheduler.engine_process.command_line import Launch
from temper_core.scheduler.engine_process.process import EngineProcess, spawn
from temper_core.scheduler.failure.diagnosis import REFUSED_PLAN, End, EndKind, diagnose
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.pre_exec_script import NO_GATE
from temper_core.scheduler.preflight.swap_memory import why_no_room

LOOK_S = 0.02
LAST_WORDS_S = 2.0
KILL_S = 10.0
OF_THE_PLAN = (
    EndKind.CONFIG,
    EndKind.USAGE,
    EndKind.VERIFIER_TOO_LARGE,
    EndKind.VERIFIER_REFUSED,
    EndKind.PANIC,
)


def load_once(
    binary: Path,
    config: str,
    arguments: Sequence[str] = (),
    *,
    timeout_s: float = 300.0,
    roots: Roots | None = None,
) -> DryRun:
    """Load *config* and end the engine at its gate. Call it from the main thread.

    Raises EngineError if no trial is possible here, or if it fails for reasons other than the
    configuration.
    """
    roots = roots or Roots()
    if not roots.sched_ext.is_dir():
        raise EngineError("this kernel has no sched_ext, so nothing can be loaded into it")
    short = why_no_room(roots)
    if short:
        raise EngineError(short)
    with ExitStack() as opened:
        run = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="temper-load-")))
        pin = opened.enter_context(_pin_of_its_own(roots))
        launch = Launch(
            binary=binary,
            config=config,
            run=run,
            arguments=with_hint_map(config, arguments, pin),
            gated_file=roots.sched_ext / "state",
        )
        process = spawn(launch)
        opened.callback(_end, process)
        return _watch(process, timeout_s, roots)


def _watch(process: EngineProcess, timeout_s: float, roots: Roots) -> DryRun:
    """Wait until the engine is at its gate or has ended. Raise EngineError after *timeout_s*."""
    until = time.monotonic() + timeout_s
    while process.exit_code is None:
        if process.gate is not None and process.gate.look():
            return DryRun(DryRunStage.LOADED, is_taken=True)
        if time.monotonic() > until:
            raise EngineError(f"the engine did not load within {timeout_s:g} s")
        time.sleep(LOOK_S)
    _wait(lambda: process.is_output_complete, LAST_WORDS_S)
    return _refusal(process, roots)


def _refusal(process: EngineProcess, roots: Roots) -> DryRun:
    code = process.exit_code or 0
    if code in NO_GATE:
        raise EngineError(f"no engine can be held back here: {one_line(process.errors)}")
    diagnosis = diagnose(End(code, process.errors, process.log, pid=process.pid, proc=roots.proc))
    if diagnosis.kind not in OF_THE_PLAN:
        raise EngineError(f"{diagnosis.summary}; {diagnosis.remedy}")
    # The engine's own checks precede the load.
    stage = (
        DryRunStage.VERIFIED
        if diagnosis.kind in (EndKind.CONFIG, EndKind.USAGE)
        else DryRunStage.LOADED
    )
    return refusal(stage, diagnosis.summary.removeprefix(REFUSED_PLAN))


def _end(process: EngineProcess) -> None:
    """End the engine before its gate is closed, which would let it through."""
    process.kill()
    _wait(lambda: process.exit_code is not None, KILL_S)
    process.close()


def _wait(condition: Callable[[], bool], limit_s: float) -> None:
    until = time.monotonic() + limit_s
    while not condition() and time.monotonic() < until:
        time.sleep(LOOK_S)


@contextmanager
def _pin_of_its_own(roots: Roots) -> Iterator[Path]:
    """Yield a path for the map of hints in a private folder. The engine makes the map.

    Without a BPF file system there is no such folder. An engine that needs the map reports that.
    """
    folder = roots.sys / "fs/bpf"
    try:
        private = Path(tempfile.mkdtemp(prefix="temper-load-", dir=folder))
    except OSError:
        yield folder / "temper-load" / "hints"
        return
    try:
        yield private / "hints"
    finally:
        with suppress(OSError):
            (private / "hints").unlink(missing_ok=True)
            private.rmdir()
