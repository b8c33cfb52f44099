"""One helper process in the agent: its pipes, its bounds, and its end."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from temper_core.errors import MachineError, PluginError
from temper_core.instruments import helper_launcher
from temper_core.instruments.family_pace import FamilyLook
from temper_core.instruments.helper_family import MARK, HelperFamily, read_stat
from temper_core.instruments.helper_order import HelperOrder
from temper_core.instruments.memory_kills import killer_in_words, memory_kills
from temper_core.records.instruments import MIB

READ_BYTES = 65_536
TAIL_BYTES = 16 * 1024
ROOM_FOR_ERROR = 16 * 1024
"""The smallest bound on the result pipe, so that an error always fits."""
WORDS_AT_ONCE = 1024 * 1024
QUIET_S = 0.1
"""The pause between reads of a helper that prints without end. It blocks at its pipe meanwhile."""
MOST_PROCESSES = 32
LONGEST_LINE = 300
PROC = Path("/proc")
INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}
"""Settings for libraries that would start a thread per CPU: a helper works in the background."""


@define(eq=False)
class HelperChild:
    """A started helper. Its pipes and limits belong to one thread. Any thread may read its end."""

    order: HelperOrder
    process: "subprocess.Popen[bytes]"
    family: HelperFamily
    pidfd: int
    result_pipe: int
    words_pipe: int
    deadline: float
    kills_before: int | None = None
    """The count of ``memory_kills`` before it started."""
    cpu_s: float = 0.0
    memory_bytes: int = 0
    reason: str = ""
    left_behind: int = 0
    quiet_until: float = 0.0
    open_pipes: set[int] = field(init=False)
    has_ended: threading.Event = field(factory=threading.Event)
    _result: bytearray = field(factory=bytearray)
    _words: bytearray = field(factory=bytearray)

    def __attrs_post_init__(self) -> None:
        self.open_pipes = {self.result_pipe, self.words_pipe}

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def descriptors(self, now: float) -> set[int]:
        """Return the descriptors to poll: its end, and its output unless that is paused."""
        quiet = {self.words_pipe} if now < self.quiet_until else set()
        return {self.pidfd} | self.open_pipes - quiet

    def kill(self, reason: str) -> None:
        """Kill it with its process group. The first reason is kept."""
        self.reason = self.reason or reason
        with suppress(OSError):  # it is not reaped yet, so the number is still its own
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def read(self, now: float) -> None:
        """Read the pipes without waiting, and keep the end of the output."""
        most = max(self.order.bounds.result_bytes, ROOM_FOR_ERROR)
        is_all = self._drain(self.result_pipe, self._result, most // READ_BYTES + 2)
        if len(self._result) > most or not is_all:
            del self._result[most:]
            self.kill(f"wrote more than the {most} bytes that its result may have")
        if not self._drain(self.words_pipe, self._words, WORDS_AT_ONCE // READ_BYTES):
            self.quiet_until = now + QUIET_S
        del self._words[:-TAIL_BYTES]

    def _drain(self, pipe: int, into: bytearray, most_chunks: int) -> bool:
        """Read *pipe* until it is empty. Return False if more may follow after *most_chunks*."""
        if pipe not in self.open_pipes:
            return True
        for _ in range(most_chunks):
            try:
                chunk = os.read(pipe, READ_BYTES)
            except BlockingIOError:
                return True
            if not chunk:
                self.open_pipes.discard(pipe)
                return True
            into += chunk
        return False

    def keep_bounds(self, now: float, look: FamilyLook) -> None:
        """Measure it with the descendants of *look*, and kill it if it exceeds a bound."""
        bounds = self.order.bounds
        stat = read_stat(self.family.proc, self.pid)
        if stat is not None:
            family = [stat, *(member for _, member in self.family.seen_by(look))]
            self.cpu_s = max(self.cpu_s, sum(member.cpu_s for member in family))
            self.memory_bytes = sum(member.resident_bytes for member in family)
            if self.memory_bytes > bounds.memory_bytes:
                self.kill(f"took more than its {bounds.memory_bytes // MIB} MiB of memory")
            elif len(family) > MOST_PROCESSES:
                self.kill(f"had more than {MOST_PROCESSES} processes")
            elif self.cpu_s > bounds.cpu_s + 1:  # its own limit does not count its children
                self.kill(f"used more than its {bounds.cpu_s} s of CPU time")
        if now >= self.deadline:
            self.kill(f"has not ended within {bounds.seconds:g} s")

    def finish(self, now: float) -> None:
        """End its descendants, reap it, and record how it ended."""
        self.read(now)
        stat = read_stat(self.family.proc, self.pid)  # the zombie's total
        if stat is not None:
            self.cpu_s = max(self.cpu_s, stat.cpu_s)
        self.left_behind = self.family.end_others()
        self.family.close()
        code = self.process.wait()
        for descriptor in (self.pidfd, self.result_pipe, self.words_pipe):
            os.close(descriptor)
        self.memory_bytes = 0
        if not self.reason and (code or not self._result):
            self.reason = self._why(code)
        self.has_ended.set()

    def outcome(self) -> Any:  # noqa: ANN401 - JSON
        """Return the result of an ended helper. Raise PluginError if there is none."""
        document: Any = None
        if not self.reason:
            try:
                document = json.loads(bytes(self._result), parse_constant=_refuse_constant)
            except (ValueError, RecursionError):
                document = None
        if isinstance(document, dict) and set(document) == {"result"}:
            return document["result"]
        reason = self.reason or "wrote no valid result into its pipe"
        raise PluginError(self.order.owner, f"helper {self.order.entry_point} {reason}")

    def _why(self, code: int) -> str:
        cpu_s = self.order.bounds.cpu_s
        is_at_limit = code == -signal.SIGKILL and self.cpu_s >= cpu_s
        if code == -signal.SIGXCPU or is_at_limit:
            return f"used more than its {cpu_s} s of CPU time"
        if code < 0:
            return f"was ended by {_signal_name(-code)}{self._sender(-code)}{self._last_words()}"
        error = self._error()
        if error:
            return error
        return f"ended with exit code {code} and without a result{self._last_words()}"

    def _sender(self, number: int) -> str:
        if number != signal.SIGKILL:
            return ""
        return f", {killer_in_words(self.kills_before, memory_kills(self.family.proc))}"

    def _error(self) -> str:
        with suppress(ValueError, RecursionError):
            document = json.loads(bytes(self._result))
            if isinstance(document, dict) and isinstance(document.get("error"), str):
                return " ".join(document["error"].split())[: helper_launcher.LONGEST_ERROR]
        return ""

    def _last_words(self) -> str:
        lines = bytes(self._words).decode(errors="replace").split("\n")
        plain = (" ".join(line.split()) for line in reversed(lines))
        last = next(filter(None, plain), "")
        return f"; its last output: {last[:LONGEST_LINE]}" if last else ""


def spawn_helper(order: HelperOrder, clock: Callable[[], float] = time.monotonic) -> HelperChild:
    """Start a helper. Raise MachineError if that fails.

    The kernel ends it with the calling *thread*, which must live as long as the agent.
    """
    kills = memory_kills(PROC)
    with ExitStack() as undo, ExitStack() as closing:
        try:
            request = _file_of(order.text())
            closing.callback(os.close, request)
            result, result_end = os.pipe2(os.O_CLOEXEC)
            undo.callback(os.close, result)
            closing.callback(os.close, result_end)
            words, words_end = os.pipe2(os.O_CLOEXEC)
            undo.callback(os.close, words)
            closing.callback(os.close, words_end)
            mark = os.urandom(8).hex()
            process = _start(request, result_end, words_end, mark)
            undo.callback(process.wait)
            undo.callback(process.kill)
            pidfd = os.pidfd_open(process.pid)
        except OSError as error:
            raise MachineError(f"cannot start a helper process: {error.strerror}") from error
        undo.pop_all()
    for descriptor in (result, words):
        os.set_blocking(descriptor, False)
    stat = read_stat(PROC, process.pid)
    family = HelperFamily(process.pid, mark, stat.start_ticks if stat is not None else 0)
    deadline = clock() + order.bounds.seconds
    return HelperChild(order, process, family, pidfd, result, words, deadline, kills)


def _start(request: int, result: int, words: int, mark: str) -> "subprocess.Popen[bytes]":
    launcher = [sys.executable, "-I", helper_launcher.__file__]
    return subprocess.Popen(  # noqa: S603 - a fixed program
        [*launcher, str(os.getpid()), str(request), str(result)],
        stdin=subprocess.DEVNULL,
        stdout=words,
        stderr=words,
        pass_fds=(request, result),
        cwd="/",
        env=_environment(mark),
        umask=0o077,
        start_new_session=True,  # Ctrl-C on the agent's terminal reaches only the agent
    )


def _environment(mark: str) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    # The mark comes first: only the beginning of an environment is read for it.
    return {MARK: mark, **inherited, **SINGLE_THREADED}


def _file_of(content: bytes) -> int:
    """Return a descriptor of a file in memory, so that no writer has to wait."""
    descriptor = os.memfd_create("temper-helper", os.MFD_CLOEXEC)
    try:
        remaining = memoryview(content)
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def is_over(child: HelperChild) -> bool:
    """Whether the process has ended. ``finish`` reaps it."""
    poll = select.poll()
    poll.register(child.pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
