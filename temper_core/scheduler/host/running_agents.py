"""The agents that run on this host, found by their processes and by the node's lock.

A process is an agent if its command line is that of ``temper agent`` (proc(5), cmdline). Its
addresses are the sockets that the kernel lists for its descriptors (/proc/PID/fd, /proc/PID/net),
so that no settings file has to be known.
"""

import os
import re
import shlex
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from attrs import frozen

from temper_core.kernel_text import kernel_lines, kernel_words, read_kernel_text
from temper_core.patient_reading import PatientReader, cgroup_owner
from temper_core.scheduler.host.agent_lock import LOCK_FILE, is_held
from temper_core.scheduler.host.processes import executable_name, is_setuid, shares_namespace
from temper_core.scheduler.host.roots import Roots, read_line

COMMAND_BYTES = 16 * 1024
FIRST_WORDS = 6
LISTENING_UNIX = "00010000"
LISTENING_TCP = "0A"
CREDENTIALS = struct.Struct("3i")
ANSWER_S = 2.0
READ_S = 0.5
MOST_STUCK = 64
"""Processes whose command line cannot be read within ``READ_S`` before no other is tried."""
OWNER_WAIT_S = 4.0
"""The time that reading the processes of one pod or user may take."""
MOST_DESCRIPTORS = 4_096
"""Descriptors of another user's process that are looked at. An agent has some hundred."""
LONGEST_SOCKET_PATH = 107
"""Bytes of ``sun_path`` without its end (unix(7))."""
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_INTERPRETER = re.compile(r"(python|pypy)[0-9.]*")
_NAME = re.compile(r"(temper|python|pypy).*")
"""Of an agent's first thread (execve(2)), and of its program. Reading them never blocks."""


class NoWayError(OSError):
    """The process listens on no socket that can be reached from here."""


@frozen
class AgentProcess:
    """An agent's process: its id, its user's id, and the arguments after ``temper agent``."""

    pid: int
    user: int
    arguments: tuple[str, ...] = ()
    proc: Path = Path("/proc")

    @property
    def command_line(self) -> str:
        """Its command line, quoted for a shell."""
        return shlex.join(("temper", "agent", *self.arguments))

    @property
    def settings_path(self) -> str:
        """The settings file it was started with, absolute. Empty without one."""
        words = iter(self.arguments)
        for word in words:
            if word == "--settings" or word.startswith("--settings="):
                path = next(words, "") if word == "--settings" else word.partition("=")[2]
                return os.path.join(self._directory(), path) if path else ""  # noqa: PTH118 - text
        return ""

    def local_socket(self) -> Path:
        """Return the Unix socket it answers on. Raise OSError if there is none to be reached.

        The process at the other end is asked of the kernel (SO_PEERCRED, unix(7)): the path may
        belong to another process by now.
        """
        problem: OSError = NoWayError("it listens on no local socket")
        for path in self._paths():
            try:
                if peer_of(path) == self.pid:
                    return path
                problem = NoWayError(f"another process answers on {path}")
            except OSError as error:
                problem = error
        raise problem

    def shares_files(self) -> bool:
        """Whether its paths mean the same files here. False if not known."""
        with suppress(OSError):
            return self._shares("mnt")
        return False

    def listens_on_port(self, port: int) -> bool:
        """Whether it listens on a TCP port of this network namespace. False if not known."""
        with suppress(OSError):
            return self._shares("net") and port in self._ports()
        return False

    def _paths(self) -> Iterator[Path]:
        inodes = self._inodes()
        base = self.proc / str(self.pid)
        with (base / "net/unix").open(encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                # Num RefCount Protocol Flags Type St Inode Path
                words = line.rstrip("\n").split(maxsplit=7)
                is_ours = len(words) > 7 and words[6] in inodes  # noqa: PLR2004 - the columns
                if is_ours and words[3] == LISTENING_UNIX and not words[7].startswith("@"):
                    yield self._seen_from_here(words[7])

    def _seen_from_here(self, path: str) -> Path:
        base = self.proc / str(self.pid)
        if not path.startswith("/"):
            return _short_enough(base / "cwd" / path)
        seen = Path(path) if self._shares("mnt") else base / "root" / path.lstrip("/")
        return _short_enough(seen)

    def _ports(self) -> Iterator[int]:
        inodes = self._inodes()
        for name in ("tcp", "tcp6"):
            with suppress(FileNotFoundError):
                text = (self.proc / str(self.pid) / "net" / name).read_text(encoding="ascii")
                for words in map(kernel_words, kernel_lines(text)[1:]):
                    if words[3] == LISTENING_TCP and words[9] in inodes:
                        yield int(words[1].rpartition(":")[2], 16)

    def _inodes(self) -> frozenset[str]:
        inodes: set[str] = set()
        with os.scandir(self.proc / str(self.pid) / "fd") as descriptors:
            for entry in islice(descriptors, MOST_DESCRIPTORS if self.user else None):
                with suppress(OSError):  # closed meanwhile
                    if match := _SOCKET.fullmatch(str(Path(entry.path).readlink())):
                        inodes.add(match[1])
        return frozenset(inodes)

    def _shares(self, kind: str) -> bool:
        return shares_namespace(self.proc / str(self.pid), kind)

    def _directory(self) -> str:
        with suppress(OSError):
            return str((self.proc / str(self.pid) / "cwd").readlink())
        return ""


def find_agents(proc: Path = Path("/proc")) -> tuple[AgentProcess, ...]:
    """Return the agents that run on this host, as far as *proc* shows them, by process id.

    A process whose command line blocks its reader is left out. Those of root are read first, so
    that no process of another user can hide them.
    """
    agents = {agent.pid: agent for agent in _candidates(proc)}
    # A child has its parent's command line until it executes its own program.
    return tuple(agents[pid] for pid in sorted(agents) if _parent_of(proc / str(pid)) not in agents)


def _short_enough(path: Path) -> Path:
    """Return a path to the same socket that fits into ``sun_path`` (unix(7)).

    The descriptor in it stays open until the process ends, which asks its agents only once.
    """
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return Path(f"/proc/self/fd/{folder}") / path.name


def peer_of(path: Path) -> int:
    """Return the id of the process that listens on a Unix socket, 0 if it is not visible here.

    Raises OSError if none does.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(ANSWER_S)
        probe.connect(os.fspath(path))
        credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    pid: int = CREDENTIALS.unpack(credentials)[0]
    return pid


def lock_holder(roots: Roots) -> int | None:
    """Return the process that holds the node's lock, None if none does.

    0 stands for a process that is not visible from here, in another PID namespace. The kernel
    lists the holders of locks in /proc/locks (proc(5)) and leaves out those it cannot name.
    """
    path = roots.node / LOCK_FILE
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        return _listed_holder(status, roots.proc) or (0 if is_held(descriptor) else None)
    finally:
        os.close(descriptor)


def holder_of(path: Path, proc: Path) -> int | None:
    """Return the process that holds the lock of the file *path*, None if that is not known."""
    with suppress(OSError):
        return _listed_holder(path.lstat(), proc)
    return None


def _candidates(proc: Path) -> Iterator[AgentProcess]:
    def command_line(pid: int) -> str:
        return read_line(proc / str(pid) / "cmdline", COMMAND_BYTES) or ""

    owner_of = cgroup_owner(proc)
    reader = PatientReader(command_line, READ_S, MOST_STUCK, owner_of, OWNER_WAIT_S)
    try:
        for user, pid in sorted(_processes(proc)):
            if not _may_be_agent(proc / str(pid)):
                continue
            text = reader.read(pid) or ""
            arguments = _arguments(text.rstrip("\0").split("\0")) if "temper" in text else None
            if arguments is not None:
                yield AgentProcess(pid, user, arguments, proc)
    finally:
        reader.close()


def _may_be_agent(folder: Path) -> bool:
    """Whether the process has the name of an agent, and its program does as far as it is known.

    Through a link of that name to a setuid program, any user has a process of root.
    """
    comm = read_line(folder / "comm", limit=16) or ""
    names = (comm, executable_name(folder) or comm)
    return all(_NAME.match(name) for name in names) and not is_setuid(folder)


def _processes(proc: Path) -> Iterator[tuple[int, int]]:
    """Yield user id and process id of each process."""
    with os.scandir(proc) as entries:
        for entry in entries:
            if entry.name.isdigit():
                with suppress(OSError):  # it has ended
                    yield entry.stat().st_uid, int(entry.name)


def _arguments(words: list[str]) -> tuple[str, ...] | None:
    """Return the arguments of ``temper agent``, None for another command."""
    is_interpreted = _INTERPRETER.fullmatch(os.path.basename(words[0])) is not None  # noqa: PTH119
    for place, word in enumerate(words[: FIRST_WORDS if is_interpreted else 1]):
        is_temper = os.path.basename(word) == "temper" or "temper_core" in word  # noqa: PTH119
        if is_temper and words[place + 1 : place + 2] == ["agent"]:
            return tuple(words[place + 2 :])
    return None


def _parent_of(folder: Path) -> int:
    # The name in parentheses may hold any character.
    fields = (read_line(folder / "stat", limit=4096) or "").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0


def _listed_holder(status: os.stat_result, proc: Path) -> int | None:
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError):
        for line in kernel_lines(read_kernel_text(proc / "locks")):
            words = kernel_words(line)
            if words[1:2] == ["FLOCK"] and words[5:6] == [device] and words[4].isdigit():
                return int(words[4])
    return None
