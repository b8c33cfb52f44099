"""The engine's binary: find it, read its version, and check a configuration with it offline."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from temper_core.engine.bounded_run import run_to_end
from temper_core.errors import EngineError

VERSION_TIMEOUT_S = 10.0
LARGEST_VERSION_BYTES = 64 * 1024
LARGEST_JUDGEMENT_BYTES = 16 * 1024 * 1024
"""The engine prints the configuration that it has parsed, which may be long."""
NO_SCHED_EXT = "sched_ext_ops.dump() missing"
"""The engine's error after parsing and verifying, on a kernel without sched_ext."""
REMEDY = "install scx_layered, or name its path in the setting scheduler.engine"
LOG_LINE = re.compile(r"^\S+Z +(TRACE|DEBUG|INFO|WARN|ERROR) ")


@frozen
class EngineBinary:
    """A binary that runs. ``version`` is its crate version, the key of the capabilities."""

    path: Path
    version: str


def find_engine(name: str) -> EngineBinary:
    """Return the engine with the *name*, a path or a name on PATH.

    Raises EngineError with a remedy if it is missing, cannot be run, or is another program.
    """
    path = shutil.which(name)
    if path is None:
        raise EngineError(f"engine {name!r}: {_why_missing(name)}; {REMEDY}")
    try:
        finished = run_to_end(
            [path, "--version"], timeout_s=VERSION_TIMEOUT_S, most_bytes=LARGEST_VERSION_BYTES
        )
        return EngineBinary(Path(path).absolute(), parse_version(finished.stdout))
    except EngineError as error:
        raise EngineError(f"engine {path}: {error}; {REMEDY}") from error


def parse_version(text: str) -> str:
    """Return the crate version in the output of ``scx_layered --version``.

    The first line reads ``scx_layered 1.1.4[-g<commit>[-dirty]] <target>``. Raises EngineError.
    """
    version_match = re.match(r"scx_layered (\d{1,9}\.\d{1,9}\.\d{1,9})(?=[-+\s]|$)", text, re.ASCII)
    if version_match is None:
        first_lines = text.strip().splitlines()[:1]
        raise EngineError(
            f"--version printed {first_lines[0][:80]!r}, no version of scx_layered"
            if first_lines
            else "--version printed nothing (engines before 1.0.15 lack it)"
        )
    return version_match[1]


def verify_offline(
    binary: EngineBinary,
    config_text: str,
    timeout_s: float = 30.0,
    *,
    arguments: Sequence[str] = (),
    sys_root: str = "/sys",
) -> tuple[bool, str]:
    """Run the engine to verify *config_text*. Return whether it accepted it, and its messages.

    This works only on a kernel without sched_ext: the engine exits when it misses it, after the
    checks. On other kernels it would attach, so EngineError is raised instead.
    """
    if (Path(sys_root) / "kernel/sched_ext").exists():
        raise EngineError("this kernel has sched_ext, so the engine would attach: use `check`")
    finished = _judge(binary, arguments, config_text, timeout_s)
    message = _last_words(finished.stderr)
    return NO_SCHED_EXT in message, message


def print_and_exit(
    binary: EngineBinary, config_text: str, timeout_s: float = 30.0
) -> tuple[bool, str]:
    """Run the engine to parse *config_text*, as any user on any kernel.

    Returns whether it could, and the configuration as parsed or the error. The engine does not
    check limits and rules between layers here.
    """
    finished = _judge(binary, ["--print-and-exit"], config_text, timeout_s)
    if finished.returncode == 0:
        return True, finished.stdout.removeprefix("specs=")
    return False, _last_words(finished.stderr)


def _judge(
    binary: EngineBinary, arguments: Sequence[str], config_text: str, timeout_s: float
) -> subprocess.CompletedProcess[str]:
    # The text may exceed the kernel's limit on the length of one argument.
    command = [str(binary.path), *arguments, "f:/dev/stdin"]
    try:
        return run_to_end(
            command, given=config_text, timeout_s=timeout_s, most_bytes=LARGEST_JUDGEMENT_BYTES
        )
    except EngineError as error:
        raise EngineError(f"engine {binary.path}: {error}") from error


def _why_missing(name: str) -> str:
    path = Path(name)
    if path.name == name:
        return "there is no such program on PATH"
    try:
        return "is not executable" if path.is_file() else "there is no such file"
    except OSError as error:  # its directory is closed to this user
        return error.strerror or str(error)


def _last_words(stderr: str) -> str:
    """Return the engine's final messages, without its log."""
    lines = [line for line in stderr.splitlines() if line.strip() and not LOG_LINE.match(line)]
    return "\n".join(lines)
