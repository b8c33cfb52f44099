"""Starts real programs whose threads have known roles, and observes them."""

import shutil
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("roles.c")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


def build(folder):
    """Compile the program. Return its path. Skip the test where there is no compiler."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed: scripts/install-compiler installs it as root")
    made = folder / "roles"
    subprocess.run(["gcc", "-O2", "-pthread", "-o", made, SOURCE], check=True)
    return made


@contextmanager
def running(made, program, *threads, nice=0):
    """Start one program with *threads*: name=role. Yield its process id and its TCP port."""
    words = ["nice", "-n", str(nice), made, program, *threads]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.pid, int(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def all_running(made, programs, clients=()):
    """Start *programs*: name -> threads and niceness, each of *clients* with a client outside."""
    with ExitStack() as ending:
        pids = []
        for name, (threads, nice) in programs.items():
            pid, port = ending.enter_context(running(made, name, *threads, nice=nice))
            pids.append(pid)
            if name in clients:
                client = subprocess.Popen([made, "client", str(port)])
                ending.callback(client.wait)
                ending.callback(client.kill)
        yield pids
