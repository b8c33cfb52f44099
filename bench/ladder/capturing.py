"""A capture of the plugin tracer while a point is measured. Kinds are entries of ``CAPTURES``."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.ladder.agent import Agent, Json, NotInTime
from bench.ladder.rows import UNCAPTURED
from temper_core import ask_agent
from temper_core.console import read_settings
from temper_core.instruments import helper_launcher
from temper_core.settings import Settings
from temper_plugin_tracer.capture.bpf_recorder import PROGRAMS

CAPTURES: Mapping[str, Mapping[str, str]] = {
    UNCAPTURED: {},
    "node": {},
    "pod": {"pod": "ladder/api"},
}
"""What is asked of ``POST /trace`` beside the time."""
LONGEST_S, MOST_BYTES = 30, 128 << 20
WAIT_S, ASK_S = 120.0, 0.5
SETTLE_S = 1.0
"""Until the names of all threads are drained."""


@contextmanager
def captured(agent: Agent, settings_file: Path, kind: str) -> Iterator[Json]:
    """Capture from before the block to after it. The yielded record is filled after it.

    Raises NotInTime.
    """
    told: Json = {"capture": kind}
    if kind == UNCAPTURED:
        yield told
        return
    settings = read_settings(settings_file)
    asked = {"seconds": LONGEST_S, "bytes": MOST_BYTES, **CAPTURES[kind]}
    begun = ask_agent("/trace", method="POST", body=asked, settings=settings)
    _wait(lambda: _records(agent.cgroup), "recording")
    time.sleep(SETTLE_S)
    yield told
    ask_agent(f"/trace/{begun['id']}", method="DELETE", settings=settings)
    _wait(lambda: "ended_by" in _entry(begun["id"], settings), "finished")
    entry = _entry(begun["id"], settings)
    told |= {key: entry[key] for key in ("events", "lost", "seconds", "ended_by")}


def _entry(capture: str, settings: Settings) -> Json:
    entries = ask_agent("/traces", settings=settings)["traces"]
    return next(entry for entry in entries if entry["id"] == capture)


def _records(cgroup: Path) -> bool:
    """Whether a helper of the agent has attached all programs of the recorder."""
    pids = (cgroup / "cgroup.procs").read_text().split()
    return any(_is_helper(pid) and _links(pid) >= len(PROGRAMS) for pid in pids)


def _is_helper(pid: str) -> bool:
    with suppress(OSError):
        return helper_launcher.__file__.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _links(pid: str) -> int:
    count = 0
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                count += "bpf_link" in str(descriptor.readlink())
    return count


def _wait(is_so: Callable[[], bool], what: str) -> None:
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > WAIT_S:
            raise NotInTime(f"the capture is not {what}")
        time.sleep(ASK_S)
