"""Checks of the recording backends on this node, for ``temper doctor``."""

import errno
import importlib.util
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from temper_core import BpfError, Check, CheckState, explain_bpf_error, load_object

NAMES = {
    "bpf": "trace backend bpf",
    "tracefs": "trace backend tracefs",
    "bcc": "trace backend bcc",
    "perfetto": "trace backend perfetto",
}
TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
CACHED_S = 60.0


class BackendChecks:
    """Tries each backend, at most once in ``CACHED_S``."""

    def __init__(self, tracefs: Iterable[Path] = TRACEFS) -> None:
        self._tracefs = tuple(tracefs)
        self._known: tuple[Check, ...] = ()
        self._until_s = 0.0

    def checks(self) -> tuple[Check, ...]:
        """Return a check for each backend. The first that is ok is the one that captures."""
        if time.monotonic() >= self._until_s:
            self._known = (
                bpf_check(),
                tracefs_check(self._tracefs),
                _absent("bcc", importlib.util.find_spec("bcc") is not None),
                _absent("perfetto", shutil.which("tracebox") or shutil.which("perfetto")),
            )
            self._until_s = time.monotonic() + CACHED_S
        return self._known


def bpf_check() -> Check:
    """Load the BPF recorder with the smallest rings, and attach one program for a moment."""
    try:
        with load_object(__package__ or "", "recorder") as recorder:
            os.close(recorder.link("on_fork"))
    except BpfError as error:
        explanation = explain_bpf_error(error)
        return Check(NAMES["bpf"], CheckState.WARNING, explanation.reason, explanation.remedy)
    return Check(NAMES["bpf"], CheckState.OK, "the recorder loads and attaches")


def tracefs_check(places: Iterable[Path] = TRACEFS) -> Check:
    """Look for a tracefs in which instances can be made."""
    name = NAMES["tracefs"]
    for place in places:
        instances = place / "instances"
        if not instances.is_dir():
            continue
        if os.access(instances, os.W_OK):
            return Check(name, CheckState.OK, f"{instances} can be written")
        reason = os.strerror(errno.EACCES)
        return Check(name, CheckState.WARNING, f"{instances}: {reason}", "run as root")
    detail = "no tracefs is mounted (the chart mounts none)"
    return Check(name, CheckState.WARNING, detail, "none is needed where the backend bpf works")


def _absent(backend: str, is_installed: object) -> Check:
    if is_installed:
        detail = f"{backend} is installed, and no capture uses it yet"
        return Check(NAMES[backend], CheckState.UNKNOWN, detail)
    detail = f"{backend} is not installed"
    return Check(NAMES[backend], CheckState.UNKNOWN, detail, "none is needed")
