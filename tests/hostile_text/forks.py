"""Runs the program in forks of a process that has imported its modules.

Importing them takes most of the time of a command. Nothing else is shared: the process has no
other thread, and has called nothing of what it has imported.
"""

import importlib
import io
import json
import os
import pkgutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import temper_core.cli
from tests.hostile_text.program import run
from tests.patience import PATIENCE_S

LARGEST = 200_000
PLUGINS = (
    *("console", "density", "kubernetes", "linter"),
    *("power", "rightsizer", "tracer", "trainer"),
)
ROOT = Path(__file__).parents[2]


class Forks:
    """Starts commands of ``temper``, one at a time."""

    def __init__(self):
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(PATIENCE_S)
        with theirs:
            words = [sys.executable, "-m", "tests.hostile_text.forks", str(theirs.fileno())]
            self._process = subprocess.Popen(words, pass_fds=[theirs.fileno()], cwd=ROOT)

    def start(self, arguments, folder, environment, output, errors=None):
        """Start a command that writes to the descriptors *output* and *errors*, or to one."""
        order = [list(arguments), str(folder), dict(environment)]
        descriptors = [output, output if errors is None else errors]
        socket.send_fds(self._ours, [json.dumps(order).encode()], descriptors)

    def wait(self):
        """Return the exit code of the command that was started last."""
        return int(self._ours.recv(100))

    def close(self):
        self._ours.close()
        self._process.wait(PATIENCE_S)


def serve(connection):
    while True:
        order, outputs, _, _ = socket.recv_fds(connection, LARGEST, 2)
        if not order:
            return
        child = os.fork()
        if child == 0:
            connection.close()
            _become(*json.loads(order), *outputs)
        for descriptor in outputs:
            os.close(descriptor)
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(arguments, folder, environment, output, errors):
    """Run the command, and end this process with its code."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    source = output if os.isatty(output) else os.open(os.devnull, os.O_RDONLY)
    os.dup2(source, 0)
    sys.argv = ["temper", *arguments]
    sys.stdin, sys.stdout, sys.stderr = _opened(0, "r"), _opened(1, "w"), _opened(2, "w")
    code = 1
    try:
        run()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _opened(descriptor, mode):
    """Open a standard stream as Python does at its start."""
    usual = sys.__stderr__ if descriptor == 2 else sys.__stdout__
    raw = os.fdopen(descriptor, f"{mode}b", closefd=False)
    line_buffering = os.isatty(descriptor) or descriptor == 2
    return io.TextIOWrapper(
        raw, encoding=usual.encoding, errors=usual.errors, line_buffering=line_buffering
    )


def _import_modules():
    packages = [temper_core.cli]
    packages += [importlib.import_module(f"temper_plugin_{name}") for name in PLUGINS]
    for package in packages:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            # Of bcc there is a program for another interpreter.
            if not module.name.endswith(("__main__", ".compiling")):
                importlib.import_module(module.name)
    for name in ("httpx2", "rich.table", "rich.console", "yaml"):
        importlib.import_module(name)


if __name__ == "__main__":
    _import_modules()
    serve(socket.socket(fileno=int(sys.argv[1])))
