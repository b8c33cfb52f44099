"""Start a command as a local workload: a cgroup of its own whose name has tier and profile.

The name is ``temper.slice/run-<name>@<tier>[@<profile>]``. The local pod source reads it back.
The cgroup is removed with its last process. If ``temper run`` was killed, or children of the
command outlived it, the next ``temper run`` removes the empty cgroup.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import frozen

from temper_core.directory_tree import directories_below
from temper_core.errors import InputError, MachineError
from temper_core.node.cgroup_names import RUN_SLICE, parse_run_name
from temper_core.node.cgroups import detect_cgroups
from temper_core.node.run_cgroups import LIMIT_NOTE, REQUEST_NOTE, is_populated, note
from temper_core.node.run_lock import run_lock
from temper_core.quantities import cpu_millis
from temper_core.records.tiers import Tier

NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}")
NAME_RULE = "letters, digits, '.', '_' or '-', at most 63, a letter or digit first"
# Signals that a terminal sends to its whole foreground group, the command included.
TYPED = frozenset({signal.SIGINT, signal.SIGQUIT})
FORWARDED = TYPED | {signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
# sigaction(2): the si_code of signals from the kernel, which include those of a terminal.
SI_KERNEL = 0x80
CFS_PERIOD_US = 100_000
SETTLE_S = 0.01
RECHECK_S = 1.0
RUNS = "a command of temper run still runs in it"
IS_LOCKED = "another process holds the lock of temper run"
NOT_FOUND = 127
NOT_EXECUTABLE = 126

Warn = Callable[[str], None]


@frozen
class Workload:
    """Name, tier and CPU sizes of a workload, in millicores. A size is None if it was not given."""

    name: str
    tier: Tier
    profile: str | None = None
    cpu_request_millis: int | None = None
    cpu_limit_millis: int | None = None

    @classmethod
    def parse(
        cls,
        name: str,
        tier: Tier,
        profile: str | None,
        cpu_request: str | None,
        cpu_limit: str | None,
    ) -> "Workload":
        """Parse options of the command line. Raise InputError with the option and its value."""
        for option, value in (("--name", name), ("--profile", profile)):
            if value is not None and not NAME.fullmatch(value):
                raise InputError(f"{option}: {value!r} must be {NAME_RULE}")
        request, limit = _millis("--cpu-request", cpu_request), _millis("--cpu-limit", cpu_limit)
        if limit == 0:
            raise InputError("--cpu-limit: must be more than 0, not 0; leave it out for no limit")
        if request is not None and limit is not None and request > limit:
            raise InputError(
                f"--cpu-request: {cpu_request} is more than --cpu-limit {cpu_limit} allows"
            )
        return cls(name, tier, profile, request, limit)

    @property
    def directory_name(self) -> str:
        """The cgroup's name below the slice."""
        return "@".join([f"run-{self.name}", str(self.tier), *filter(None, [self.profile])])


@frozen
class CommandEnd:
    """The command's exit code, its cgroup, and the processes that still run in it."""

    exit_code: int
    cgroup: Path
    still_running: tuple[int, ...] = ()


def name_of_command(command: str) -> str:
    """Return a workload's default name. Raise InputError if *command* has no valid one."""
    name = command.rpartition("/")[2]
    if not NAME.fullmatch(name):
        raise InputError(
            f"the command {command!r} gives no name for the workload; "
            f"choose one with --name: {NAME_RULE}"
        )
    return name


def run(
    workload: Workload,
    argv: Sequence[str],
    *,
    proc_root: Path = Path("/proc"),
    warn: Warn = lambda _line: None,
) -> CommandEnd:
    """Run *argv* in the workload's cgroup and wait. Signals to this process are forwarded to it.

    Raises MachineError if no cgroup can be made, InputError if a workload of that name runs.
    *warn* is called for each option that has no effect, and for a tier while no engine is attached.
    """
    root = detect_cgroups(proc_root=proc_root).unified
    if root is None:
        raise MachineError("temper run needs cgroup v2; this host has none mounted")
    cgroup = root / RUN_SLICE / workload.directory_name
    with _holding_signals() as mask:
        try:
            # Until the command is in it, the new cgroup looks like a left-over one.
            with run_lock(cgroup.parent) as is_alone:
                _make(workload, cgroup, warn, is_alone=is_alone)
                _tell_of_stock_scheduler(workload, warn)
                child = _start(argv, cgroup, mask)
            code = _wait(child)
            left = _processes(cgroup)
        finally:
            with suppress(MachineError), run_lock(cgroup.parent):
                _remove_empty(cgroup)
    return CommandEnd(code if code >= 0 else 128 - code, cgroup, left)


def _tell_of_stock_scheduler(workload: Workload, warn: Warn) -> None:
    from temper_core.scheduler.host.kernel import SchedExt  # noqa: PLC0415 - slow

    if SchedExt().read().is_without_us:
        warn(
            f"scx_layered is not attached, so {workload.name} runs on the stock scheduler, "
            f"without the effect of tier {workload.tier}; temper doctor shows why"
        )


def remove_left_behind(*, is_dry: bool = False) -> tuple[list[Path], dict[Path, str]]:
    """Remove the cgroups without processes. Return the removed ones, and why others are left.

    With *is_dry* nothing is removed. Raises MachineError if the hierarchy cannot be opened.
    """
    root = detect_cgroups().unified
    if root is None or not (root / RUN_SLICE).is_dir():
        return [], {}
    parent = root / RUN_SLICE
    if is_dry:
        empty, populated = _by_use(parent)
        return empty, dict.fromkeys(populated, RUNS)
    with run_lock(parent) as is_alone:
        empty, populated = _by_use(parent)
        for cgroup in empty if is_alone else ():
            _remove_empty(cgroup)
    removed = [cgroup for cgroup in empty if not cgroup.exists()]
    why = "a process was put into it" if is_alone else IS_LOCKED
    left = (cgroup for cgroup in empty if cgroup not in removed)
    return removed, dict.fromkeys(populated, RUNS) | dict.fromkeys(left, why)


def _by_use(parent: Path) -> tuple[list[Path], list[Path]]:
    """Return the cgroups of workloads without processes, and those with processes."""
    cgroups = [each for each in _subdirectories(parent) if parse_run_name(each.name)]
    populated = [cgroup for cgroup in cgroups if is_populated(cgroup)]
    return [cgroup for cgroup in cgroups if cgroup not in populated], populated


class CommandFailed(InputError):  # noqa: N818 - reads as the fact it reports
    """The command could not be started. The exit code is a shell's: 126 or 127."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]


def _millis(option: str, quantity: str | None) -> int | None:
    try:
        return None if quantity is None else cpu_millis(quantity)
    except InputError as error:
        raise InputError(f"{option}: {error}") from error


def _make(workload: Workload, cgroup: Path, warn: Warn, *, is_alone: bool) -> None:
    parent = cgroup.parent
    try:
        parent.mkdir(exist_ok=True)
        if is_alone:
            _remove_empty_below(parent)
        _refuse_second(workload.name, parent)
        _delegate_cpu(parent)
        cgroup.mkdir()
    except OSError as error:
        hint = "; run as root" if isinstance(error, PermissionError) else ""
        raise MachineError(f"cannot make cgroup {cgroup}: {error.strerror}{hint}") from error
    for option in keep_sizes(workload, cgroup):
        warn(
            f"{option} has no effect: {cgroup} has neither a CPU controller "
            "nor extended attributes to keep it in"
        )


def _refuse_second(name: str, parent: Path) -> None:
    for directory in _subdirectories(parent):
        parsed = parse_run_name(directory.name)
        if parsed is not None and parsed[0] == name:
            pids = ", ".join(map(str, _processes(directory)))
            raise InputError(
                f"a workload named {name!r} is running already, in {RUN_SLICE}/{directory.name}"
                f"{f' (process {pids})' if pids else ''}; give this one another --name"
            )


def _delegate_cpu(parent: Path) -> None:
    """Enable the CPU controller for the workload's cgroup, if the hierarchy has it."""
    for directory in (parent.parent, parent):
        # A root that holds processes, as in a container, may not delegate. The notes still work.
        with suppress(OSError):
            if "cpu" in (directory / "cgroup.controllers").read_text().split():
                (directory / "cgroup.subtree_control").write_text("+cpu")


def keep_sizes(workload: Workload, cgroup: Path) -> tuple[str, ...]:
    """Store the sizes with *cgroup*. Return the options that could not be stored.

    Temper reads exact values from extended attributes. For the stock scheduler cpu.weight and
    cpu.max are written as the kubelet does.
    """
    request, limit = workload.cpu_request_millis, workload.cpu_limit_millis
    lost = []
    if request is not None:
        is_noted = note(cgroup, REQUEST_NOTE, request)
        if not _written(cgroup / "cpu.weight", str(_weight(request))) and not is_noted:
            lost.append("--cpu-request")
    if limit is not None:
        is_noted = note(cgroup, LIMIT_NOTE, limit)
        quota_us = max(limit * CFS_PERIOD_US // 1000, 1000)
        if not _written(cgroup / "cpu.max", f"{quota_us} {CFS_PERIOD_US}") and not is_noted:
            lost.append("--cpu-limit")
    return tuple(lost)


def _written(file: Path, text: str) -> bool:
    try:
        return file.exists() and file.write_text(text) > 0
    except OSError:
        return False


def _weight(millis: int) -> int:
    # The kubelet's formulas: millicores to cgroup v1 shares, shares to a v2 weight.
    shares = min(max(millis * 1024 // 1000, 2), 262_144)
    return 1 + (shares - 2) * 9_999 // 262_142


def _start(argv: Sequence[str], cgroup: Path, mask: set[int]) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(argv, preexec_fn=_joining(cgroup, mask))  # noqa: S603, PLW1509 - the user's own command; this process has one thread
    except OSError as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        raise CommandFailed(f"{argv[0]}: {error.strerror}", code) from error
    except subprocess.SubprocessError as error:
        raise MachineError(f"cannot put a process into {cgroup}; run as root") from error


def _joining(cgroup: Path, mask: set[int]) -> Callable[[], None]:
    procs = os.fsencode(cgroup / "cgroup.procs")

    def join() -> None:
        descriptor = os.open(procs, os.O_WRONLY)
        os.write(descriptor, b"0")
        os.close(descriptor)
        # The engine matches a moved thread again at its next wake-up. A thread that never sleeps
        # would stay in the layer of this process.
        time.sleep(SETTLE_S)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return join


@contextmanager
def _holding_signals() -> Iterator[set[int]]:
    """Block the forwarded signals and SIGCHLD, so that ``sigtimedwait`` receives them."""
    # With an inherited SIG_IGN the kernel would not report the end of the child.
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    held = FORWARDED | {signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield {int(number) for number in mask}
    finally:
        while signal.sigtimedwait(held, 0) is not None:
            pass  # the command has ended: drop the signal
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGCHLD, before)


def _wait(child: "subprocess.Popen[bytes]") -> int:
    while (code := child.poll()) is None:
        received = signal.sigtimedwait(FORWARDED | {signal.SIGCHLD}, RECHECK_S)
        if received is not None and _is_for_command(received):
            child.send_signal(received.si_signo)
    return code


def _is_for_command(received: signal.struct_siginfo) -> bool:
    is_typed = received.si_signo in TYPED and received.si_code == SI_KERNEL
    return received.si_signo in FORWARDED and not is_typed


def _processes(cgroup: Path) -> tuple[int, ...]:
    pids: set[int] = set()
    for directory in directories_below(cgroup):
        # A cgroup may be removed meanwhile, and a threaded one does not list its processes.
        with suppress(OSError):
            pids.update(map(int, Path(directory, "cgroup.procs").read_text().split()))
    return tuple(sorted(pids))


def _remove_empty_below(parent: Path) -> None:
    for directory in _subdirectories(parent):
        if parse_run_name(directory.name) is not None:
            _remove(directory)


def _remove_empty(cgroup: Path) -> None:
    _remove(cgroup)
    with suppress(OSError):
        cgroup.parent.rmdir()


def _remove(cgroup: Path) -> None:
    """Remove *cgroup* with the cgroups that the command made below it, unless it is populated."""
    if is_populated(cgroup):
        return
    for directory in reversed(list(directories_below(cgroup))):
        with suppress(OSError):
            Path(directory).rmdir()


def _subdirectories(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir())
