"""Check a configuration with the real engine, as far as that is possible without attaching.

parsed    by the engine's JSON reader: keys, types, names of matchers and kinds
verified  also by its own rules: order, limits, ranges, hints (only without sched_ext)
loaded    also by the kernel's verifier, behind a gate (``scheduler/engine_process/load_trial.py``)
"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from attrs import frozen

from temper_core.engine.binary import EngineBinary, print_and_exit, verify_offline
from temper_core.errors import EngineError

PARSE_ERROR = "Failed to parse specs"
HINT_MATCHER = '"HintEquals"'
HINT_MAP_OPTION = "--task-hint-map"
NO_MAP = "/sys/fs/bpf/temper-rehearsal"
"""Never opened: the engine exits earlier."""
LONGEST_LINE = 400


class DryRunStage(StrEnum):
    """The last stage that checked a configuration."""

    PARSED = "parsed"
    VERIFIED = "verified"
    LOADED = "loaded"


WHILE = {
    DryRunStage.PARSED: "reading it",
    DryRunStage.VERIFIED: "verifying it",
    DryRunStage.LOADED: "being loaded with it",
}


@frozen
class DryRun:
    """The engine's result for a configuration. ``said`` is its error if it refused it.

    ``stage`` is the last stage that checked it.
    """

    stage: DryRunStage
    is_taken: bool
    said: str = ""

    @property
    def line(self) -> str:
        """The result in one line."""
        if not self.is_taken:
            return f"refused  the engine, {WHILE[self.stage]}: {self.said}"
        return {
            DryRunStage.PARSED: "parsed by the engine; not checked by its rules and the kernel's "
            "verifier, because this kernel has sched_ext: --load does that, and attaches nothing",
            DryRunStage.VERIFIED: "parsed and verified by the engine; not loaded into a kernel",
            DryRunStage.LOADED: "parsed and verified by the engine, and loaded into this kernel; "
            "it was ended before it could attach",
        }[self.stage]


def rehearse(
    binary: EngineBinary,
    config: str,
    arguments: Sequence[str] = (),
    *,
    timeout_s: float = 30.0,
    sys_root: str = "/sys",
) -> DryRun:
    """Check *config* with *binary*, which cannot attach here, in about half a second.

    Raises EngineError if it cannot be run, does not exit in time, or exits without output.
    """
    if (Path(sys_root) / "kernel/sched_ext").exists():
        stage = DryRunStage.PARSED
        is_taken, message = print_and_exit(binary, config, timeout_s)
    else:
        stage = DryRunStage.VERIFIED
        is_taken, message = verify_offline(
            binary, config, timeout_s, arguments=with_hint_map(config, arguments), sys_root=sys_root
        )
    if is_taken:
        return DryRun(stage, is_taken=True)
    if not message.strip():
        raise EngineError(f"{binary.path} ended without a word")
    return refusal(stage, one_line(message))


def refusal(stage: DryRunStage, said: str) -> DryRun:
    """Return the engine's refusal. Its message may be that of an earlier stage."""
    if PARSE_ERROR in said:
        stage = DryRunStage.PARSED
    return DryRun(stage, is_taken=False, said=said)


def with_hint_map(
    config: str, arguments: Sequence[str], path: str | Path = NO_MAP
) -> tuple[str, ...]:
    """Add the option of the hint map to *arguments* if *config* has hints and it is missing."""
    has_it = any(argument.startswith(HINT_MAP_OPTION) for argument in arguments)
    if HINT_MATCHER not in config or has_it:
        return tuple(arguments)
    return (*arguments, f"{HINT_MAP_OPTION}={path}")


def one_line(said: str) -> str:
    """Join the engine's error and its causes."""
    lines = [line.strip().removeprefix("Error:").strip() for line in said.splitlines()]
    text = ": ".join(line for line in lines if line and line != "Caused by:")
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"
