"""Recorders of scheduler events: Temper's, perf and trace-cmd. How each is started and ended.

All record the whole machine into a folder. ``perf sched record`` chooses its events itself. The
others are given those that Temper records.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from temper_core import HelperBounds
from temper_core.instruments import helper_launcher
from temper_core.instruments.helper_child import SINGLE_THREADED
from temper_core.instruments.helper_order import order_of
from temper_plugin_tracer.capture.captures import HELPER_MEMORY

FETCH = Path(__file__).with_name("fetch-rivals")
ID = "20260101-000000-0000"
MIB = 1 << 20
LONGEST_S = 30.0
END_S = 60.0
EVENTS = (
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_migrate_task",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
)
CAPTURE = "temper_plugin_tracer.capture.capture_helper:capture"
LAUNCH = 'exec "$0" -I "$1" "$PPID" 3 4 3<"$2/order" 4>"$2/result"'
"""Starts a helper as the agent does: with its parent, its order, and where its result goes."""
REFUSED = ("/proc/sys/kernel/ftrace_enabled", "/sys/kernel/tracing/set_ftrace_*")
"""Controls of the function tracer. trace-cmd ends if a kernel refuses them, though they are not
needed. Each is covered by /dev/null in a mount namespace of its own."""
OWN_TRACEFS = f"""
mount --make-rprivate /
mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev /sys/kernel/tracing
for file in {" ".join(REFUSED)}; do mount --bind /dev/null "$file"; done
exec "$@"
"""


@frozen
class Recording:
    """What a recorder has left: the number of events, the bytes of its file, lost events."""

    events: int
    bytes: int
    lost: int = 0


@frozen
class Tracer:
    """A recorder. ``end`` asks it to finish. ``read`` is called when it has."""

    name: str
    command: Callable[[Path], Sequence[str]]
    end: Callable[[Path, "subprocess.Popen[bytes]"], None]
    read: Callable[[Path], Recording]
    environment: Mapping[str, str] = field(factory=dict)


def tracers() -> list[Tracer]:
    """Return Temper's recorder and the others. Print why others are missing."""
    fetched = subprocess.run([FETCH, "tracers"], stdout=subprocess.PIPE, text=True, check=False)
    if fetched.returncode:
        print("bench: nothing to compare with: the tools could not be fetched, see above")
        return [temper()]
    root = Path(fetched.stdout.strip())
    libraries = ":".join(sorted({str(path.parent) for path in root.rglob("*.so*")}))
    environment = {"LD_LIBRARY_PATH": libraries}
    perf, trace_cmd = str(root / "usr/bin/perf"), str(root / "usr/bin/trace-cmd")
    chosen = [part for event in EVENTS for part in ("-e", event)]
    return [
        temper(),
        Tracer(
            "perf sched record",
            lambda folder: _in_own_tracefs(
                perf, "sched", "record", "-o", str(folder / "perf.data")
            ),
            _interrupt,
            lambda folder: _read_perf(perf, folder, environment),
            environment,
        ),
        Tracer(
            "perf record, our events",
            lambda folder: _in_own_tracefs(
                perf, "record", "-a", "-o", str(folder / "perf.data"), *chosen
            ),
            _interrupt,
            lambda folder: _read_perf(perf, folder, environment),
            environment,
        ),
        Tracer(
            "trace-cmd record, our events",
            lambda folder: _in_own_tracefs(
                trace_cmd, "record", "-o", str(folder / "trace.dat"), *chosen
            ),
            _interrupt,
            lambda folder: _read_trace_cmd(trace_cmd, folder, environment),
            environment,
        ),
    ]


def temper(process: int | None = None) -> Tracer:
    """Return the helper process of a capture, which records and encodes.

    It records the whole node, or *process*.
    """
    return Tracer(
        "temper trace capture" if process is None else "temper trace capture --process",
        lambda folder: _temper(folder, [] if process is None else [process]),
        lambda folder, _: (folder / f"{ID}.end").touch(),
        _read_temper,
        SINGLE_THREADED,
    )


def _temper(folder: Path, processes: Sequence[int]) -> Sequence[str]:
    argument = {
        "id": ID,
        "directory": str(folder),
        "node": "node",
        "by": "bench",
        "backend": "bpf",
        "bounds": {
            "seconds": LONGEST_S,
            "bytes": 128 * MIB,
            "events": 16_000_000,
            "free_bytes": 0,
        },
        "selection": {"label": "", "cgroups": [], "processes": list(processes), "cpus": []},
        "cores": [[cpu, cpu] for cpu in sorted(os.sched_getaffinity(0))],
    }
    bounds = HelperBounds(memory_bytes=HELPER_MEMORY, cpu_s=60, seconds=END_S)
    (folder / "order").write_bytes(order_of("tracer", CAPTURE, argument, bounds).text())
    return ["/bin/sh", "-c", LAUNCH, sys.executable, helper_launcher.__file__, str(folder)]


def _read_temper(folder: Path) -> Recording:
    answer = json.loads((folder / "result").read_text())
    result = answer.get("result", answer)
    if "error" in result:
        raise SystemExit(f"temper: {result['error']}")
    return Recording(result["events"], result["bytes"], result["lost"])


def _in_own_tracefs(*command: str) -> Sequence[str]:
    unshare = shutil.which("unshare") or "unshare"
    return [unshare, "--mount", "sh", "-c", OWN_TRACEFS, "sh", *command]


def _interrupt(_: Path, process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGINT)


def _read_perf(perf: str, folder: Path, environment: Mapping[str, str]) -> Recording:
    path = folder / "perf.data"
    shown = _lines([perf, "report", "-i", str(path), "--stats"], environment)
    count = {"SAMPLE": 0, "LOST": 0}
    for line in shown:
        words = line.replace("events:", "").split()
        if len(words) >= 2 and words[0] in count:  # noqa: PLR2004 - a name and a number
            count[words[0]] = max(count[words[0]], int(words[1]))
    return Recording(count["SAMPLE"], path.stat().st_size, count["LOST"])


def _read_trace_cmd(trace_cmd: str, folder: Path, environment: Mapping[str, str]) -> Recording:
    path = folder / "trace.dat"
    lines = _lines([trace_cmd, "report", "-i", str(path)], environment)
    events = sum(": " in line and "cpus=" not in line for line in lines)
    return Recording(events, path.stat().st_size)


def _lines(command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout.splitlines()
