"""Run the engine's binary to its end, within bounds of time and output."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from temper_core.errors import EngineError

QUIET: Mapping[str, str] = {"RUST_BACKTRACE": "0", "NO_COLOR": "1"}
"""Without these every error has a backtrace, and the log is coloured."""
READ_BYTES = 65_536


def run_to_end(
    command: Sequence[str], *, timeout_s: float, most_bytes: int, given: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run *command* with *given* as its standard input, and return what it printed.

    Its process group is killed after *timeout_s*, and when it prints more than *most_bytes* to one
    of its pipes. Raises EngineError with the reason in these cases, and if it cannot be started.
    """
    until = time.monotonic() + timeout_s
    try:
        child = _started(command, given)
    except OSError as error:
        raise EngineError(f"cannot be run: {error.strerror or error}") from error
    with child:
        try:
            stdout, stderr = _output(child, until, most_bytes)
            child.wait(max(until - time.monotonic(), 0.0))
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            raise EngineError(f"did not end within {timeout_s:g} s") from error
        finally:
            _end_all(child)
    return subprocess.CompletedProcess(command, child.returncode, stdout, stderr)


def _started(command: Sequence[str], given: str) -> "subprocess.Popen[bytes]":
    # A pipe would have to be written to while the output is read.
    with os.fdopen(os.memfd_create("engine-input"), "w+b") as stdin:
        stdin.write(given.encode(errors="replace"))
        stdin.seek(0)
        return subprocess.Popen(  # noqa: S603 - the binary that the settings name
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **QUIET},
            start_new_session=True,
        )


def _output(child: "subprocess.Popen[bytes]", until: float, most_bytes: int) -> tuple[str, str]:
    """Read both pipes until they end. Raise TimeoutError if that takes too long."""
    kept = {}
    with selectors.DefaultSelector() as selector:
        for pipe in filter(None, (child.stdout, child.stderr)):
            kept[pipe.fileno()] = bytearray()
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            for key, _ in selector.select(left_s):
                chunk = os.read(key.fd, READ_BYTES)
                kept[key.fd] += chunk
                if len(kept[key.fd]) > most_bytes:
                    raise EngineError(f"printed more than {most_bytes >> 10} KiB")
                if not chunk:
                    selector.unregister(key.fileobj)
    stdout, stderr = (content.decode(errors="replace") for content in kept.values())
    return stdout, stderr


def _end_all(child: "subprocess.Popen[bytes]") -> None:
    """Kill a running child and its process group: all of these processes hold the pipes."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
