"""Changes the host's safe-mode file in a process of its own, and waits for it some seconds.

A thread that waits for a hanging disk ends by no signal, and neither does its process.
"""

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from temper_core.errors import MachineError
from temper_core.safe_mode.host_file import SafeModeFile

ANSWER_S = 10.0
"""Seconds. On a busy machine Python starts slowly. A change takes milliseconds."""

LAST_LOOK_S = 0.5

Action = Literal["add", "remove"]

_PROBE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_left_behind: list["subprocess.Popen[bytes]"] = []


BEGUN = "begun"
"""What the process prints before it changes the file."""


class SilentFileError(MachineError):
    """The disk of the host's file does not answer."""


class _NotAwaitedError(Exception):
    """The command has left."""


def change_file(
    path: Path, action: Action, requester: str, reason: str = "", program: Sequence[str] = ()
) -> str:
    """Do as ``SafeModeFile.add`` and ``remove``. Return the note of *add*, "removed" or "".

    Raises MachineError as they do, and SilentFileError after ``ANSWER_S``. No change begins to be
    seen after that: a change that comes late could undo a later one.
    """
    arguments = [action, str(path), requester, reason]
    try:
        # Without -P modules are imported from the working directory, which may be another user's.
        process = subprocess.Popen(  # noqa: S603 - this interpreter
            [*(program or (sys.executable, "-P", "-m", __name__)), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:  # the user or the cgroup has no process left
        return _changed(SafeModeFile(path), action, requester, reason)
    try:
        output = _output_of(process)
    except subprocess.TimeoutExpired as error:
        _leave_behind(process)
        state = "may be changed by now" if error.output else "is not changed"
        raise SilentFileError(
            f"{path} does not answer within {ANSWER_S:.0f} s: its disk hangs. It {state}, "
            f"and process {process.pid} ends once the disk answers"
        ) from error
    output = output.removeprefix(BEGUN.encode())
    if process.returncode != 0 or not output:  # its code is lost where SIGCHLD is ignored
        return _changed(SafeModeFile(path), action, requester, reason)
    return _said(output)


def _output_of(process: "subprocess.Popen[bytes]") -> bytes:
    """Return what *process* prints until its end. Raise TimeoutExpired after ``ANSWER_S``."""
    try:
        output, _ = process.communicate(timeout=ANSWER_S)
    except subprocess.TimeoutExpired:
        # A command that was itself stopped for so long has read nothing yet.
        output, _ = process.communicate(timeout=LAST_LOOK_S)
    return output


def _leave_behind(process: "subprocess.Popen[bytes]") -> None:
    """Wait for no end of *process*, which may stand in the kernel for hours."""
    if process.stdout is not None:
        process.stdout.close()
    _left_behind.append(process)  # the end of the object would warn of a process that runs


def _said(output: bytes) -> str:
    answer: dict[str, str] = json.loads(output)
    if "error" in answer:
        raise MachineError(answer["error"])
    return answer["done"]


def _changed(file: SafeModeFile, action: str, requester: str, reason: str) -> str:
    if action == "add":
        return file.add(requester, reason)
    return "removed" if file.remove(requester) else ""


def _wait_for_disk(path: Path) -> None:
    """Return once a file beside *path* is on its disk, or has failed. Reads do not hang."""
    probe = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):  # the change names what is wrong
        try:
            with open(os.open(probe, _PROBE_FLAGS, 0o600), "wb") as file:  # noqa: PTH123 - its flags
                file.write(b"\n")
                file.flush()
                os.fsync(file.fileno())
        finally:
            probe.unlink()


def _confirm() -> None:
    """Raise if the command does not read standard output: it closes the pipe when it leaves."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    if any(events & select.POLLERR for _, events in poll.poll(0)):
        raise _NotAwaitedError


def _main(action: str, path: str, requester: str, reason: str) -> None:
    _wait_for_disk(Path(path))
    with suppress(_NotAwaitedError, BrokenPipeError):
        _confirm()
        print(BEGUN, end="", flush=True)
        try:
            done = _changed(SafeModeFile(Path(path), _confirm), action, requester, reason)
            answer = {"done": done}
        except MachineError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
