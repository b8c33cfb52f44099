"""The engine as a child process. It dies with the agent, and its output never blocks it."""

import os
import stat
import subprocess
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from temper_core.directory_tree import make_directories
from temper_core.errors import EngineError
from temper_core.scheduler.engine_process.command_line import Launch, command, environment
from temper_core.scheduler.engine_process.gate import Gate
from temper_core.scheduler.engine_process.output_tail import OutputTail
from temper_core.scheduler.preflight.node_checks import start_of

OUTPUT_LIMIT_BYTES = 256 * 1024
PID_FILE = "engine.pid"
NEXT_PID_FILE = "engine-next.pid"


class EngineProcess:
    """A running engine, made by ``spawn``. ``close`` removes its files.

    ``gate`` is the gate it will wait at, or None. ``close`` closes it too.
    """

    def __init__(
        self,
        launch: Launch,
        child: "subprocess.Popen[bytes]",
        output: OutputTail,
        gate: Gate | None = None,
    ) -> None:
        self.launch = launch
        self.gate = gate
        self._child = child
        self._output = output
        self._note = f"{child.pid} {start_of(child.pid)}\n"
        self._note_down(PID_FILE if gate is None else NEXT_PID_FILE)

    @property
    def pid(self) -> int:
        """The process id. The exec keeps it."""
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code: None while it runs, negative if a signal ended it."""
        return self._child.poll()

    @property
    def is_output_complete(self) -> bool:
        """Whether all of the process's output has been read."""
        return self._output.is_complete

    @property
    def errors(self) -> str:
        """The last 256 KiB of its standard error."""
        return self._output.text("stderr")

    @property
    def log(self) -> str:
        """The last 256 KiB of its standard output, which newer engines log to."""
        return self._output.text("stdout")

    def terminate(self) -> None:
        """Send SIGTERM. The engine handles it only once it has finished loading."""
        self._child.terminate()

    def kill(self) -> None:
        """Send SIGKILL. The kernel then detaches the scheduler by itself."""
        self._child.kill()

    def take_over(self) -> None:
        """Rename the pid file: this engine has replaced its predecessor."""
        with suppress(OSError):
            (self.launch.run / NEXT_PID_FILE).replace(self.launch.run / PID_FILE)

    def close(self) -> None:
        """Release the process, which should have ended, and remove its files."""
        self._output.close()
        if self.gate is not None:
            self.gate.close()
        notes = [self.launch.run / name for name in (PID_FILE, NEXT_PID_FILE)]
        ours = [note for note in notes if _text_of(note) == self._note]
        for path in (self.launch.config_path, *ours):
            with suppress(OSError):
                path.unlink()

    def _note_down(self, name: str) -> None:
        path = self.launch.run / name
        with suppress(OSError):
            path.unlink(missing_ok=True)  # opening a pipe of that name would block
            path.write_text(self._note, encoding="ascii")


def spawn(launch: Launch) -> EngineProcess:
    """Start the engine.

    Raises EngineError if it cannot be started and GateError if its gate cannot be made. Must be
    called from the main thread: the parent-death signal is sent when the *thread* that forked
    ends, and the main thread lives as long as the agent.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("the engine must be spawned from the main thread")
    with ExitStack() as undo:
        try:
            _prepare(launch)
            undo.callback(launch.config_path.unlink, missing_ok=True)
            gate = _make_gate(launch)
            if gate is not None:
                undo.callback(gate.close)
            child = _start(launch)
            output = _drained(child)
        except (OSError, RuntimeError) as error:  # RuntimeError: no thread can be started
            raise EngineError(f"cannot start {launch.binary}: {error}") from error
        undo.pop_all()
    return EngineProcess(launch, child, output, gate)


def _prepare(launch: Launch) -> None:
    """Write the configuration to a directory that only this user can write."""
    make_directories(launch.run, 0o700)
    status = launch.run.lstat()
    writable_by_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or writable_by_others:
        raise EngineError(
            f"{launch.run} must be a directory that only its owner, this user, can write"
        )
    launch.config_path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(launch.config_path, flags, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(launch.config)
    except OSError:  # the disk is full
        launch.config_path.unlink(missing_ok=True)
        raise


def _make_gate(launch: Launch) -> Gate | None:
    if launch.gated_file is None:
        return None
    launch.gate_path.unlink(missing_ok=True)
    return Gate(launch.gate_path)


def _start(launch: Launch) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - a fixed program; the binary is the operator's choice
        command(launch),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env=environment(launch),
        start_new_session=True,  # Ctrl-C on the agent's terminal reaches only the agent
        bufsize=0,
    )


def _drained(child: "subprocess.Popen[bytes]") -> OutputTail:
    """Begin to read the output of *child*. If that fails, end the child."""
    descriptors: dict[str, int] = {}
    with ExitStack() as undo:
        undo.callback(_end, child)
        for name, pipe in (("stdout", child.stdout), ("stderr", child.stderr)):
            assert pipe is not None  # noqa: S101 - requested in _start
            # The Popen object would close its own end when it is destroyed.
            descriptors[name] = os.dup(pipe.fileno())
            undo.callback(os.close, descriptors[name])
            pipe.close()
        tail = OutputTail(descriptors, OUTPUT_LIMIT_BYTES)
        undo.pop_all()
    return tail


def _text_of(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace")
    return ""


def _end(child: "subprocess.Popen[bytes]") -> None:
    child.kill()
    child.wait()
    for unread in (child.stdout, child.stderr):
        if unread is not None:
            unread.close()
