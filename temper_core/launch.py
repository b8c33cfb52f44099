"""Start a command as a local workload: a cgroup of its own whose name says tier and profile.

The name is ``temper.slice/run-<name>@<tier>[@<profile>]``; the local pod source reads it back.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from attrs import frozen

from temper_core.errors import InputError, MachineError
from temper_core.node.cgroups import detect_cgroups
from temper_core.node.quantities import cpu_millis
from temper_core.records.tiers import Tier

SLICE = "temper.slice"
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}")
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
CFS_PERIOD_US = 100_000
SETTLE_S = 0.01
NOT_FOUND = 127
NOT_EXECUTABLE = 126


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
        """Read what the command line says; raise InputError naming the option and its value."""
        for option, value in (("--name", name), ("--profile", profile)):
            if value is not None and not NAME.fullmatch(value):
                raise InputError(
                    f"{option}: {value!r} must be letters, digits, '.', '_' or '-', at most 63"
                )
        return cls(
            name,
            tier,
            profile,
            None if cpu_request is None else cpu_millis(cpu_request),
            None if cpu_limit is None else cpu_millis(cpu_limit),
        )

    @property
    def directory_name(self) -> str:
        """The cgroup's name below the slice."""
        return "@".join([f"run-{self.name}", str(self.tier), *filter(None, [self.profile])])


@frozen
class Ended:
    """How the command ended, and which of its processes did not."""

    exit_code: int
    cgroup: Path
    still_running: tuple[int, ...] = ()


def run(workload: Workload, argv: Sequence[str], *, proc_root: Path = Path("/proc")) -> Ended:
    """Run *argv* in the workload's cgroup and wait; signals that reach us go to the command.

    Raises MachineError where no cgroup can be made.
    """
    with _cgroup(workload, proc_root) as cgroup:
        try:
            child = subprocess.Popen(argv, preexec_fn=_joining(cgroup))  # noqa: S603, PLW1509 - the user's own command; this process has one thread
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            raise CommandFailed(f"{argv[0]}: {error.strerror}", code) from error
        with _forwarding_to(child):
            code = child.wait()
        left = _processes(cgroup)
    return Ended(code if code >= 0 else 128 - code, cgroup, left)


class CommandFailed(InputError):  # noqa: N818 - reads as the fact it reports
    """The command could not be started; exits as a shell would."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]


@contextmanager
def _cgroup(workload: Workload, proc_root: Path) -> Iterator[Path]:
    root = detect_cgroups(proc_root=proc_root).unified
    if root is None:
        raise MachineError("temper run needs cgroup v2; this host has none mounted")
    parent = root / SLICE
    cgroup = parent / workload.directory_name
    try:
        parent.mkdir(exist_ok=True)
        _delegate_cpu(root, parent)
        cgroup.mkdir(exist_ok=True)
        _apply_sizes(workload, cgroup)
    except OSError as error:
        raise MachineError(f"cannot make cgroup {cgroup}: {error.strerror}; run as root") from error
    try:
        yield cgroup
    finally:
        _remove(cgroup)
        _remove(parent)


def _delegate_cpu(root: Path, parent: Path) -> None:
    """Let the workload have CPU files of its own, where the hierarchy has the controller."""
    for directory in (root, parent):
        if "cpu" in (directory / "cgroup.controllers").read_text().split():
            (directory / "cgroup.subtree_control").write_text("+cpu")


def _apply_sizes(workload: Workload, cgroup: Path) -> None:
    """Write the sizes as the kubelet does, so that the stock scheduler keeps them as well."""
    if workload.cpu_request_millis is not None and (cgroup / "cpu.weight").exists():
        (cgroup / "cpu.weight").write_text(str(_weight(workload.cpu_request_millis)))
    if workload.cpu_limit_millis is not None and (cgroup / "cpu.max").exists():
        quota_us = workload.cpu_limit_millis * CFS_PERIOD_US // 1000
        (cgroup / "cpu.max").write_text(f"{max(quota_us, 1000)} {CFS_PERIOD_US}")


def _weight(millis: int) -> int:
    # The kubelet's formulae: millicores to cgroup v1 shares, shares to a v2 weight.
    shares = min(max(millis * 1024 // 1000, 2), 262_144)
    return 1 + (shares - 2) * 9_999 // 262_142


def _joining(cgroup: Path) -> Callable[[], None]:
    procs = os.fsencode(cgroup / "cgroup.procs")

    def join() -> None:
        descriptor = os.open(procs, os.O_WRONLY)
        os.write(descriptor, b"0")
        os.close(descriptor)
        # The engine matches a moved thread again when it next wakes up; one that never sleeps
        # would stay in the layer of whoever called us.
        time.sleep(SETTLE_S)

    return join


@contextmanager
def _forwarding_to(child: "subprocess.Popen[bytes]") -> Iterator[None]:
    def forward(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    # A terminal interrupts the whole group, the command included; we only wait for it to end.
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _processes(cgroup: Path) -> tuple[int, ...]:
    return tuple(int(pid) for pid in (cgroup / "cgroup.procs").read_text().split())


def _remove(cgroup: Path) -> None:
    try:
        cgroup.rmdir()
    except OSError:
        # Somebody still lives in it: another run's cgroup, or children of the command.
        return
