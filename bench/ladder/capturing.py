"""A capture of the plugin tracer while a point is measured. Kinds are entries of ``CAPTURES``."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from attrs import field, frozen

from bench.ladder.agent import Agent, Json, NotInTime
from bench.ladder.pods import halting, running
from bench.ladder.rows import UNCAPTURED
from temper_core import ask_agent
from temper_core.console import read_settings
from temper_core.instruments import helper_launcher
from temper_core.settings import Settings
from temper_plugin_tracer.capture.bpf_recorder import PROGRAMS

LONGEST_S, MOST_BYTES = 30, 128 << 20
WAIT_S, ASK_S = 120.0, 0.5
SETTLE_S = 1.0
"""Until the names of all threads are drained."""


@frozen
class Capture:
    """What is asked of ``POST /trace`` beside the bounds, and which processes halt meanwhile.

    Processes halt by SIGSTOP while requests are served. With a halted helper what remains is the
    BPF programs, whose rings hold what they record, and the agent that watches the helper. With a
    halted agent too it is the programs alone. With ``is_none`` nothing is captured.
    """

    asked: Json = field(factory=dict)
    halts_helper: bool = False
    halts_agent: bool = False
    is_none: bool = False


CAPTURES = {
    UNCAPTURED: Capture(is_none=True),
    "nothing": Capture(is_none=True, halts_agent=True),
    "programs-alone": Capture(halts_helper=True, halts_agent=True),
    "programs": Capture(halts_helper=True),
    "node": Capture(),
    "pod": Capture({"pod": "ladder/api"}),
}


@contextmanager
def captured(agent: Agent, settings_file: Path, kind: str, pod: Path) -> Iterator[Json]:
    """Capture from before the block to after it. The yielded record is filled after it.

    *pod* is the cgroup of the server's pod, which needs a process to be selected. Raises NotInTime.
    """
    capture = CAPTURES[kind]
    told: Json = {"capture": kind}
    if capture.is_none:
        with _halting(capture, agent):
            yield told
        return
    settings = read_settings(settings_file)
    asked = {"seconds": LONGEST_S, "bytes": MOST_BYTES, **capture.asked}
    with running(pod, ("sleep", "infinity")):
        _wait(lambda: "populated 1" in (pod / "cgroup.events").read_text(), "of a process")
        begun = ask_agent("/trace", method="POST", body=asked, settings=settings)
        _wait(lambda: any(_recorders(agent.cgroup)), "recording")
    time.sleep(SETTLE_S)
    with _halting(capture, agent):
        yield told
    ask_agent(f"/trace/{begun['id']}", method="DELETE", settings=settings)
    _wait(lambda: "ended_by" in _entry(begun["id"], settings), "finished")
    entry = _entry(begun["id"], settings)
    told |= {key: entry[key] for key in ("events", "lost", "seconds", "ended_by")}


@contextmanager
def _halting(capture: Capture, agent: Agent) -> Iterator[None]:
    with ExitStack() as halted:
        if capture.halts_helper:
            halted.enter_context(halting(next(_recorders(agent.cgroup))))
        if capture.halts_agent:
            halted.enter_context(agent.halted())
        yield


def _entry(capture: str, settings: Settings) -> Json:
    entries = ask_agent("/traces", settings=settings)["traces"]
    return next(entry for entry in entries if entry["id"] == capture)


def _recorders(cgroup: Path) -> Iterator[int]:
    """Yield the helpers of the agent that have attached all programs of the recorder."""
    for pid in (cgroup / "cgroup.procs").read_text().split():
        with suppress(OSError):
            is_helper = helper_launcher.__file__ in Path(f"/proc/{pid}/cmdline").read_text()
            if is_helper and _links(pid) >= len(PROGRAMS):
                yield int(pid)


def _links(pid: str) -> int:
    count = 0
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
