"""A process that captures once, as an agent does."""

import json
import subprocess
import sys

from tests.patience import PATIENCE_S


def agent(folder, *, free_bytes=0, under=(), refusing=(), **request):
    """Start a process that captures as an agent does."""
    words = (folder, free_bytes, json.dumps(request), *refusing)
    command = [*under, sys.executable, "-m", "tests.tracer.capture.one_capture", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def helper_of(process):
    """Return the process id of the capture's helper."""
    return next(int(line) for line in process.stdout if line.strip().isdecimal())


def outcome_of(process):
    """Return what ``one_capture`` tells when the capture is over."""
    _, errors = process.communicate(timeout=PATIENCE_S)
    return json.loads(errors.splitlines()[-1])
