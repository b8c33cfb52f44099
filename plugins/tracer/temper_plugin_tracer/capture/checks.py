"""Checks of the recording backends on this node, for ``temper doctor``."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from temper_core import BpfError, Check, CheckState, MachineError, explain_bpf_error, load_object
from temper_plugin_tracer.capture.bcc.installed import find_bcc
from temper_plugin_tracer.capture.tracefs.instance import TracingInstance, mounted
from temper_plugin_tracer.capture.whole_node.programs import find_programs

NAMES = {
    "bpf": "trace backend bpf",
    "tracefs": "trace backend tracefs",
    "bcc": "trace backend bcc",
    "perfetto": "trace backend perfetto",
}
CACHED_S = 60.0
NOT_NEEDED = "none is needed where another backend works"


class BackendChecks:
    """Tries each backend, at most once in ``CACHED_S``."""

    def __init__(self) -> None:
        self._known: tuple[Check, ...] = ()
        self._until_s = 0.0

    def checks(self) -> tuple[Check, ...]:
        """Return a check for each backend. The first that is ok is the one that ``auto`` takes."""
        if time.monotonic() >= self._until_s:
            self._known = (bpf_check(), tracefs_check(), bcc_check(), perfetto_check())
            self._until_s = time.monotonic() + CACHED_S
        return self._known


def bpf_check() -> Check:
    """Load the BPF recorder with the smallest rings, and attach one program for a moment."""
    with suppress(BpfError):
        return _loaded("recorder", "the recorder loads and attaches")
    try:
        return _loaded("recorder_plain", "the recorder for kernels before 6.7 loads and attaches")
    except BpfError as error:
        explanation = explain_bpf_error(error)
    return Check(NAMES["bpf"], CheckState.WARNING, explanation.reason, explanation.remedy)


def _loaded(name: str, detail: str) -> Check:
    with load_object(__package__ or "", name) as recorder:
        os.close(recorder.link("on_fork"))
    return Check(NAMES["bpf"], CheckState.OK, detail)


def tracefs_check(place: Callable[[], Path] = mounted) -> Check:
    """Make an instance of tracefs, and remove it."""
    name = NAMES["tracefs"]
    try:
        with TracingInstance.make(place()) as instance:
            return Check(name, CheckState.OK, f"an instance can be made in {instance.tracefs}")
    except MachineError as error:
        return Check(name, CheckState.WARNING, str(error), NOT_NEEDED)


def bcc_check(root: Path = Path("/")) -> Check:
    """Look for bcc and for what it compiles with. Only a capture has it compile."""
    name = NAMES["bcc"]
    try:
        found = find_bcc(root)
    except MachineError as error:
        return Check(name, CheckState.UNKNOWN, str(error), NOT_NEEDED)
    return Check(name, CheckState.OK, f"{found} compiles the recorder for each capture")


def perfetto_check(path: str | None = None) -> Check:
    """Look for the programs of Perfetto and for what they record with."""
    name = NAMES["perfetto"]
    try:
        programs = find_programs(path)
    except MachineError as error:
        return Check(name, CheckState.UNKNOWN, str(error), NOT_NEEDED)
    return Check(name, CheckState.OK, f"{programs.commands['perfetto'][0]} records the whole node")
