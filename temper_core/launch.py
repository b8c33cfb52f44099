"""Start a command as a local workload: a cgroup of its own whose name says tier and profile.

The name is ``temper.slice/run-<name>@<tier>[@<profile>]``. The local pod source reads it back.
The cgroup lives as long as a process in it. Whatever is left empty, because ``temper run`` was
killed or the command's children outlived it, the next ``temper run`` removes.
"""

import fcntl
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import frozen

from temper_core.errors import InputError, MachineError
from temper_core.node.cgroup_names import RUN_SLICE, parse_run_name
from temper_core.node.cgroups import detect_cgroups
from temper_core.node.quantities import cpu_millis
from temper_core.node.run_cgroups import LIMIT_NOTE, REQUEST_NOTE, is_populated, note
from temper_core.records.tiers import Tier

NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}")
NAME_RULE = "letters, digits, '.', '_' or '-', at most 63, a letter or digit first"
# What a terminal sends to its whole foreground group, the command included.
TYPED = frozenset({signal.SIGINT, signal.SIGQUIT})
FORWARDED = TYPED | {signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
# sigaction(2): the si_code of what the kernel sends by itself, a terminal's signals among it.
SI_KERNEL = 0x80
CFS_PERIOD_US = 100_000
SETTLE_S = 0.01
LONGEST_LOCK_S = 5.0
LOCK_RETRY_S = 0.02
RECHECK_S = 1.0
NOT_FOUND = 127
NOT_EXECUTABLE = 126

Warn = Callable[[str], None]


@frozen
class Workload:
    """What to run as: CPU sizes in millicores, ``None`` where not asked for."""

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
        """Read what the command line says. Raise InputError naming the option and its value."""
        for option, value in (("--name", name), ("--profile", profile)):
            if value is not None and not NAME.fullmatch(value):
                raise InputError(f"{option}: {value!r} must be {NAME_RULE}")
        request, limit = _millis("--cpu-request", cpu_request), _millis("--cpu-limit", cpu_limit)
        if limit == 0:
            raise InputError("--cpu-limit: 0 leaves no time to run; leave it out for no limit")
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
    """How the command ended, and which of its processes did not."""

    exit_code: int
    cgroup: Path
    still_running: tuple[int, ...] = ()


def name_of_command(command: str) -> str:
    """Return the name a workload has by default. Raise InputError where *command* gives none."""
    name = command.rpartition("/")[2]
    if not NAME.fullmatch(name):
        raise InputError(
            f"the command {command!r} gives no name for the workload; "
            f"say one with --name: {NAME_RULE}"
        )
    return name


def run(
    workload: Workload,
    argv: Sequence[str],
    *,
    proc_root: Path = Path("/proc"),
    warn: Warn = lambda _line: None,
) -> CommandEnd:
    """Run *argv* in the workload's cgroup and wait. Signals that reach us go to the command.

    Raises MachineError where no cgroup can be made, InputError where a workload of that name runs.
    *warn* is told what could not be done as asked.
    """
    root = detect_cgroups(proc_root=proc_root).unified
    if root is None:
        raise MachineError("temper run needs cgroup v2; this host has none mounted")
    cgroup = root / RUN_SLICE / workload.directory_name
    with _holding_signals() as mask:
        try:
            # Until the command is in it, the new cgroup looks like one that was left behind.
            with _locked(root):
                _make(workload, cgroup, warn)
                child = _start(argv, cgroup, mask)
            code = _wait(child)
            left = _processes(cgroup)
        finally:
            with suppress(MachineError), _locked(root):
                _remove_empty(cgroup)
    return CommandEnd(code if code >= 0 else 128 - code, cgroup, left)


def remove_left_behind(*, is_dry: bool = False) -> tuple[list[Path], list[Path]]:
    """Remove the cgroups where no command lives any more. Return those, and those where one does.

    With *is_dry* nothing is removed. Raises MachineError where the hierarchy stays locked.
    """
    root = detect_cgroups().unified
    if root is None or not (root / RUN_SLICE).is_dir():
        return [], []
    with _locked(root):
        ours = [each for each in _subdirectories(root / RUN_SLICE) if parse_run_name(each.name)]
        living = [each for each in ours if is_populated(each)]
        empty = [each for each in ours if each not in living]
        for each in () if is_dry else empty:
            _remove_empty(each)
    return [each for each in empty if is_dry or not each.exists()], living


class CommandFailed(InputError):  # noqa: N818 - reads as the fact it reports
    """The command could not be started. Exits as a shell would."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]


def _millis(option: str, quantity: str | None) -> int | None:
    try:
        return None if quantity is None else cpu_millis(quantity)
    except InputError as error:
        raise InputError(f"{option}: {error}") from error


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Keep every other ``temper run`` of this host from making or removing cgroups."""
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise MachineError(f"cannot open {root}: {error.strerror}") from error
    try:
        _take_lock(descriptor, root)
        yield
    finally:
        os.close(descriptor)


def _take_lock(descriptor: int, root: Path) -> None:
    deadline = time.monotonic() + LONGEST_LOCK_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise MachineError(f"{root}: another process keeps it locked") from error
            time.sleep(LOCK_RETRY_S)


def _make(workload: Workload, cgroup: Path, warn: Warn) -> None:
    parent = cgroup.parent
    try:
        parent.mkdir(exist_ok=True)
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
        found = parse_run_name(directory.name)
        if found is not None and found[0] == name:
            pids = ", ".join(map(str, _processes(directory)))
            raise InputError(
                f"a workload named {name!r} is running already, in {RUN_SLICE}/{directory.name}"
                f"{f' (process {pids})' if pids else ''}; give this one another --name"
            )


def _delegate_cpu(parent: Path) -> None:
    """Let the workload have CPU files of its own, where the hierarchy has the controller."""
    for directory in (parent.parent, parent):
        # A root that holds processes, as in a container, may not delegate. The notes remain.
        with suppress(OSError):
            if "cpu" in (directory / "cgroup.controllers").read_text().split():
                (directory / "cgroup.subtree_control").write_text("+cpu")


def keep_sizes(workload: Workload, cgroup: Path) -> tuple[str, ...]:
    """Keep the sizes with *cgroup*. Return the options for which there is no way to.

    They are noted exactly for Temper, and written as the kubelet does for the stock scheduler.
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
    # The kubelet's formulae: millicores to cgroup v1 shares, shares to a v2 weight.
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
        # The engine matches a moved thread again when it next wakes up. One that never sleeps
        # would stay in the layer of whoever called us.
        time.sleep(SETTLE_S)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    return join


@contextmanager
def _holding_signals() -> Iterator[set[int]]:
    """Hold back what is forwarded, and the news of the child, until it is asked for."""
    # Where somebody made us ignore it, the kernel would not tell that the child has ended.
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    held = FORWARDED | {signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield {int(number) for number in mask}
    finally:
        while signal.sigtimedwait(held, 0) is not None:
            # Too late for the command.
            pass
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
    found: set[int] = set()
    for directory, _, _ in os.walk(cgroup):
        # A cgroup may vanish meanwhile. A threaded one does not list its processes.
        with suppress(OSError):
            found.update(map(int, Path(directory, "cgroup.procs").read_text().split()))
    return tuple(sorted(found))


def _remove_empty_below(parent: Path) -> None:
    for directory in _subdirectories(parent):
        if parse_run_name(directory.name) is not None:
            _remove(directory)


def _remove_empty(cgroup: Path) -> None:
    _remove(cgroup)
    with suppress(OSError):
        cgroup.parent.rmdir()


def _remove(cgroup: Path) -> None:
    """Remove *cgroup* with what the command made below it, unless somebody lives there."""
    if is_populated(cgroup):
        return
    for directory, _, _ in os.walk(cgroup, topdown=False):
        with suppress(OSError):
            Path(directory).rmdir()


def _subdirectories(parent: Path) -> list[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir())
