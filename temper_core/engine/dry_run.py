"""The real engine judges a configuration, as far as it can be asked to without attaching.

parsed    the engine's reader of JSON has looked: keys, types, names of matchers and kinds
verified  its own rules as well: order, limits, ranges, hints (only without sched_ext)
loaded    the kernel's verifier as well, behind a gate (``scheduler/engine/load_trial.py``)
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
"""Never opened: the engine ends before it would."""
LONGEST_LINE = 400


class DryRunStage(StrEnum):
    """How far a configuration got before somebody refused it, or at all."""

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
    """What the engine made of a configuration. ``said`` are its words where it refused.

    ``stage`` is the last one that has looked.
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
            DryRunStage.PARSED: "parsed by the engine; neither its rules nor the kernel's verifier "
            "have looked, as this kernel has sched_ext: --load lets them, and attaches nothing",
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
    """Let *binary* judge *config* without a chance to attach, in about half a second.

    Raises EngineError where it cannot be run, does not end in time, or ends without a word.
    """
    if (Path(sys_root) / "kernel/sched_ext").exists():
        stage = DryRunStage.PARSED
        is_taken, said = print_and_exit(binary, config, timeout_s)
    else:
        stage = DryRunStage.VERIFIED
        is_taken, said = verify_offline(
            binary, config, timeout_s, arguments=with_hint_map(config, arguments), sys_root=sys_root
        )
    if is_taken:
        return DryRun(stage, is_taken=True)
    if not said.strip():
        raise EngineError(f"{binary.path} ended without a word")
    return refusal(stage, one_line(said))


def refusal(stage: DryRunStage, said: str) -> DryRun:
    """Say that the engine refused with these words, which may be those of an earlier stage."""
    if PARSE_ERROR in said:
        stage = DryRunStage.PARSED
    return DryRun(stage, is_taken=False, said=said)


def with_hint_map(
    config: str, arguments: Sequence[str], path: str | Path = NO_MAP
) -> tuple[str, ...]:
    """Add the option of the hint map to *arguments* where *config* has hints and they lack it."""
    has_it = any(each.startswith(HINT_MAP_OPTION) for each in arguments)
    if HINT_MATCHER not in config or has_it:
        return tuple(arguments)
    return (*arguments, f"{HINT_MAP_OPTION}={path}")


def one_line(said: str) -> str:
    """Join the engine's error and its causes."""
    lines = [line.strip().removeprefix("Error:").strip() for line in said.splitlines()]
    told = ": ".join(line for line in lines if line and line != "Caused by:")
    return told if len(told) <= LONGEST_LINE else f"{told[: LONGEST_LINE - 1]}…"
