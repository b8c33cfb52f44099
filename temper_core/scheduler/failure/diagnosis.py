"""Diagnosis of an ended engine from its exit code, its last output and the kernel's log.

The phrases are those of scx_layered 1.1, libbpf and Linux 6.12 to 6.18, recorded from real ends.
The first match wins, the most specific first: a BPF error is both an ``EXIT:`` line and exit
code 1.
"""

import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import frozen

from temper_core.scheduler.failure.endings import Diagnosis, EndKind
from temper_core.scheduler.failure.stalls import read_stall
from temper_core.scheduler.pre_exec_script import (
    CANNOT_MOUNT_GATE,
    CANNOT_RUN,
    NO_MOUNT_NAMESPACE,
    PARENT_GONE,
)

__all__ = ["Diagnosis", "End", "EndKind", "diagnose", "ejection"]

DETAIL_BYTES = 2_000
USAGE_EXITS = (2, 255)
PANIC_EXITS = (101, 134, -signal.SIGABRT)
OF_THE_LAUNCHER = (CANNOT_MOUNT_GATE, NO_MOUNT_NAMESPACE, PARENT_GONE, 126, CANNOT_RUN)


@frozen
class End:
    """The evidence an ended engine leaves. ``proc`` is the node's /proc as it is now."""

    exit_code: int
    errors: str = ""
    log: str = ""
    kernel_log: Sequence[str] = ()
    pid: int = 0
    proc: Path = Path("/proc")


def diagnose(end: End) -> Diagnosis:
    """Return the reason *end* shows, or UNKNOWN with the exit code if nothing matches."""
    return _diagnosis(_from_exit_line(end) or _from_text(end) or _from_exit_code(end), end)


def ejection(end: End) -> Diagnosis | None:
    """Return why the kernel ejected the engine, None if its log shows no ejection.

    The engine's own exit lines are no evidence: one that restarted in place has printed some.
    """
    reason = _from_kernel_log(end)
    return _diagnosis(reason, end) if reason is not None else None


def _diagnosis(reason: "Reason", end: End) -> Diagnosis:
    kind, summary = reason
    return Diagnosis(kind, " ".join(summary.split()), _detail(end))


LAST_BYTES = 16_384
"""The exit line is among the last that the engine prints."""
LONGEST_REASON = 64
LONGEST_MESSAGE = 1_024
"""Bytes of an exit's message in the kernel (SCX_EXIT_MSG_LEN, kernel/sched/ext.c)."""
EXIT_LINE = re.compile(
    rf"^(?P<error>Error: )?EXIT: (?P<reason>[^(\[\n]{{1,{LONGEST_REASON}}}?)"
    rf"(?: \((?P<message>.{{0,{LONGEST_MESSAGE}}}?)\))?(?: on CPU \d{{1,7}})?$",
    re.DOTALL | re.MULTILINE,
)
"""``EXIT: REASON (MESSAGE) on CPU 3``. Kernels without ``scx_exit_info.exit_cpu`` name no CPU.

A message may hold the name of a thread, and a name any line end. A reason has no bracket, and so no
forged one is followed by the ``[tid]`` of its thread.
"""
# From the beginning of a record: the kernel also logs the names of programs that crash, and their
# authors choose these.
SWITCH_LINE = re.compile(
    r'sched_ext: BPF scheduler "(?P<ops>[^"]+)" (?:enabled|disabled \((?P<reason>.+)\))$'
)
LOCKED_UP = re.compile(
    r"watchdog: BUG: soft lockup - CPU#\d+ stuck for \S+ \[(?P<comm>.+):(?P<pid>\d+)\]"
)
BY_ITSELF = "unregistered from user space"
Reason = tuple[EndKind, str]


def _from_exit_line(end: End) -> Reason | None:
    """Read the kernel's own reason from the engine's last line or from the kernel's log."""
    exit_line = _last_exit_line(end.errors) or _last_exit_line(end.log)
    if exit_line is not None:
        return _ejection(*exit_line, end)
    return _from_kernel_log(end)


def _from_kernel_log(end: End) -> Reason | None:
    for index in range(len(end.kernel_log) - 1, -1, -1):
        switch = SWITCH_LINE.match(end.kernel_log[index])
        if switch:  # older lines belong to earlier attachments
            message = _message_after(switch["ops"], end.kernel_log[index + 1 :])
            return _ejection(switch["reason"], message, end) if switch["reason"] else None
    return None


def _last_exit_line(text: str) -> tuple[str, str] | None:
    """Return reason and message of the last exit line in *text*, None without one.

    The name of a thread has no room for a whole line that begins with ``Error: EXIT:``.
    """
    found = list(EXIT_LINE.finditer(text[-LAST_BYTES:]))
    last = ([each for each in found if each["error"]] or found)[-1:]
    return (last[0]["reason"], last[0]["message"] or "") if last else None


def _message_after(ops: str, lines: Sequence[str]) -> str:
    marker = f"sched_ext: {ops}: "
    return next((line.removeprefix(marker) for line in lines if line.startswith(marker)), "")


def _ejection(reason: str, message: str, end: End) -> Reason | None:
    if reason == BY_ITSELF:
        return None  # the exit code distinguishes a normal end from a signal
    cause = f"{reason}: {message}" if message else reason
    if reason == "runnable task stall" or "failed to run for" in message:
        return _stall(message, end)
    kind = next((kind for kind, pattern in EXIT_REASONS if re.search(pattern, cause)), None)
    culprit = _locked_up(end.kernel_log) if kind is EndKind.LOCKUP else ""
    return kind or EndKind.RUNTIME_ERROR, f"the kernel ejected the engine: {cause}{culprit}"


EXIT_REASONS: tuple[tuple[EndKind, str], ...] = (
    (EndKind.SYSRQ, r"sysrq-S"),
    (EndKind.HOTPLUG, r"going (?:off|on)line|hotplug seq"),
    (EndKind.LOCKUP, r"soft lockup|hardlockup|RCU CPU stall"),
    (EndKind.STALL, r"watchdog failed to check in|runnable task stall"),
    (EndKind.PERF_TARGET, r"Invalid cpuperf target"),
    (EndKind.NO_LAYER, r"didn't match any layer"),
    # SCX_DSQ_LOCAL and SCX_DSQ_GLOBAL without their upper half
    (EndKind.BTF_TRUNCATED, r"non-existent DSQ 0x[12]\b"),
    (EndKind.BPF_ERROR, r"^scx_bpf_error"),
    (EndKind.UNREGISTERED, r"^unregistered from (?:BPF|the main kernel)"),
)


def _locked_up(kernel_log: Sequence[str]) -> str:
    lockups = [match for match in map(LOCKED_UP.match, kernel_log) if match]
    return f", by {lockups[-1]['comm']}[{lockups[-1]['pid']}]" if lockups else ""


def _stall(message: str, end: End) -> Reason:
    """Name the stalled thread, its wait, its CPU, and the real-time thread that held the CPU."""
    stall = read_stall(message, end.errors or end.log, end.proc)
    if stall is None:
        summary = f"the kernel ejected the engine: runnable task stall {message}"
        return EndKind.STALL, summary.rstrip()
    return EndKind.RT_HOG if stall.hog else EndKind.STALL, str(stall)


ATTACH, BUSY, ATTACH_WITHIN = "attach", "Device or resource busy (os error 16)", 200
OUT_OF_PRIVILEGES = "Operation not permitted (os error 1)", "Permission denied"
TEXTS: tuple[tuple[EndKind, tuple[tuple[str, ...], ...], str], ...] = (
    (
        EndKind.FOREIGN_SCHEDULER,
        (("another sched_ext scheduler is already running",),),
        "another sched_ext scheduler was attached first",
    ),
    (
        EndKind.BTF_MISMATCH,
        (("malformed scx kfunc prototype",), ("func_proto incompatible with vmlinux",)),
        "the kernel's BTF has function prototypes the engine cannot use (pahole before 1.26)",
    ),
    (
        EndKind.VERIFIER_TOO_LARGE,
        (("Argument list too long (os error 7)",), ("BPF program is too large",)),
        "the verifier refused the plan as too large: too many kinds of layer in it",
    ),
    (
        EndKind.TOO_MANY_CGROUPS,
        (("Failed to insert cgroup",),),
        "more cgroups than the engine can index (16384): remove those that nothing uses",
    ),
    (
        EndKind.KERNEL_UNSUPPORTED,
        (("kernel too old",), ('Not compatible with "isolcpus="',)),
        "the engine cannot run on this kernel as it was booted",
    ),
    (
        EndKind.KCONFIG_MISSING,
        (
            ("failed to open system Kconfig",),
            ("Failed to load BPF program", "Invalid argument"),
        ),
        "the kernel refused the engine's program; its configuration file may be missing",
    ),
    (
        EndKind.OUT_OF_MEMORY,
        (("Cannot allocate memory (os error 12)",),),
        "there is no memory for the engine's maps",
    ),
    (
        EndKind.VERIFIER_REFUSED,
        (("Failed to load BPF program", "Permission denied (os error 13)"),),
        "this kernel's verifier refused the engine's program",
    ),
    (
        EndKind.NOT_PERMITTED,
        tuple((what, why) for what in ("BPF", "attach") for why in OUT_OF_PRIVILEGES),
        "the engine may not load its program here",
    ),
)
"""Of each kind the alternatives: phrases that an engine's text has, one after the other."""
REFUSED_PLAN = "the engine refused the plan: "
"""The prefix of the engine's own message."""
PANICKED = re.compile(r"panicked at [^\n]{0,500}:\n(.{1,200})")
CONFIG_ERROR = re.compile(
    r"Failed to parse specs|No layer spec|Too many layer specs|Terminal spec|Non-terminal spec"
    r"|Spec \"[^\"]*\" has|has hint value|HintEquals match|invalid type: |unknown variant"
)


def _from_text(end: End) -> Reason | None:
    if end.exit_code == 0:
        return None
    evidence = "\n".join((end.errors, end.log, *end.kernel_log))
    for kind, alternatives, summary in TEXTS:
        if any(_has_in_turn(evidence, phrases) for phrases in alternatives):
            return kind, summary
        if kind is EndKind.FOREIGN_SCHEDULER and _is_busy_to_attach(evidence):
            return kind, summary
    is_refusal = end.exit_code == 1 and "EXIT: " not in end.errors
    if is_refusal and CONFIG_ERROR.search(end.errors):
        return EndKind.CONFIG, f"{REFUSED_PLAN}{_error_line(end.errors)}"
    return None


def _is_busy_to_attach(text: str) -> bool:
    """Whether an attachment shortly before is what was busy, and no other device."""
    return any(ATTACH in before[-ATTACH_WITHIN:] for before in text.split(BUSY)[:-1])


def _has_in_turn(text: str, phrases: Sequence[str]) -> bool:
    """Whether *text* has each of *phrases* behind the one before, in time linear in the text."""
    place = 0
    for phrase in phrases:
        place = text.find(phrase, place)
        if place < 0:
            return False
        place += len(phrase)
    return True


def _error_line(text: str) -> str:
    """Return the error and its innermost cause, on one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    start = next((n for n, line in enumerate(lines) if line.startswith("Error:")), 0)
    error_lines = [line.removeprefix("Error:").strip() for line in lines[start : start + 4]]
    return " ".join(line for line in error_lines if line and line != "Caused by:")[:300]


def _from_exit_code(end: End) -> Reason:
    if end.exit_code in PANIC_EXITS:
        panic = PANICKED.search(end.errors)
        return EndKind.PANIC, f"the engine panicked: {panic[1]}" if panic else "the engine panicked"
    for applies, reason in _EXIT_CODES:
        if applies(end):
            return reason
    error = _error_line(end.errors)
    return EndKind.UNKNOWN, f"the engine ended with exit code {end.exit_code}: {error}".rstrip(": ")


def _was_out_of_memory(end: End) -> bool:
    killed = re.compile(rf"Killed process {end.pid}\b")
    return end.exit_code == -signal.SIGKILL and any(map(killed.search, end.kernel_log))


_EXIT_CODES: tuple[tuple[Callable[[End], bool], Reason], ...] = (
    (_was_out_of_memory, (EndKind.OUT_OF_MEMORY, "the kernel killed the engine: out of memory")),
    (
        lambda end: end.exit_code == -signal.SIGKILL,
        (EndKind.KILLED, "the engine was killed by SIGKILL (out of memory is possible)"),
    ),
    (
        lambda end: end.exit_code in (-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP),
        (EndKind.TERMINATED, "the engine was ended by a signal while it was loading"),
    ),
    (
        lambda end: end.exit_code == 0,
        (EndKind.TERMINATED, "the engine ended by itself or at a signal (exit 0)"),
    ),
    (
        lambda end: end.exit_code in USAGE_EXITS,
        (EndKind.USAGE, "the engine does not know one of its options"),
    ),
    (
        lambda end: end.exit_code in OF_THE_LAUNCHER,
        (EndKind.LAUNCH_FAILED, "the engine could not be started"),
    ),
)


def _detail(end: End) -> str:
    """Return the end of the engine's output and the last five lines of the kernel's log."""
    output = end.errors.strip() or end.log.strip()
    kernel = "\n".join(end.kernel_log[-5:])
    return "\n".join(part for part in (output[-DETAIL_BYTES:], kernel) if part)
