"""What captures do to the resident memory of an agent.

    python bench/trace_memory.py [--settle S] [--json]

It needs root and BPF. Two agents run with all plugins. One captures: a second, as much as a trace
can hold beside a pair of processes that wake each other without end, the same beside 20,000 threads
that begin and end, and ten captures in a row. Each trace is copied from the agent. The other
agent captures nothing, and sees the same machine. The figures are the growth of both since before
the first capture, in KiB: resident memory, its proportional part, and the peak.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bpf_programs import report
from memory import AGENT, PATIENCE_S

TEMPER = str(Path(sys.executable).with_name("temper"))
WARM_UP_S = 15.0
KINDS = {
    "rss": ("smaps_rollup", "Rss"),
    "pss": ("smaps_rollup", "Pss"),
    "peak": ("status", "VmHWM"),
}
PAIR = """
import os
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(there[1])
    while os.write(back[1], os.read(there[0], 1)): pass
    os._exit(0)
os.close(back[1])
while True:
    os.write(there[1], b"x")
    os.read(back[0], 1)
"""
BIRTHS = """
import threading
while True:
    threads = [threading.Thread(target=int) for _ in range(20_000)]
    for thread in threads:
        thread.start()
        thread.join()
"""
CASES: Mapping[str, tuple[int, str, Sequence[str]]] = {
    "a second": (1, "", ("--seconds", "1")),
    "128 MiB": (1, PAIR, ("--seconds", "30", "--mib", "128")),
    "20,000 threads": (1, BIRTHS, ("--seconds", "10")),
    "ten in a row": (10, "", ("--seconds", "1")),
}
"""How many captures, what runs meanwhile, and the options of each."""


@contextmanager
def agent(folder: Path) -> Iterator[tuple[int, Path]]:
    """Run an agent. Yield its process id and its settings."""
    folder.mkdir()
    settings = folder / "agent.toml"
    settings.write_text(
        f'run_directory = "{folder}/run"\nstate_directory = "{folder}/state"\n'
        '[server]\nlisten = ""\n'
    )
    command = [sys.executable, "-c", AGENT, "agent", "--observe-only", "--settings", str(settings)]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not (folder / "run/agent.sock").exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"bench: {(folder / 'log').read_text()[-2000:]}")
                time.sleep(0.2)
            yield process.pid, settings
        finally:
            process.terminate()


def memory_of(pid: int) -> dict[str, int]:
    """Return the memory of a process in KiB, by kind."""
    texts = {file: Path(f"/proc/{pid}/{file}").read_text() for file in ("smaps_rollup", "status")}
    return {
        kind: int(re.findall(rf"^{field}:\s+(\d+)", texts[file], re.MULTILINE)[0])
        for kind, (file, field) in KINDS.items()
    }


@contextmanager
def running(script: str) -> Iterator[None]:
    """Run a Python script with its children, if there is one."""
    if not script:
        yield
        return
    with subprocess.Popen([sys.executable, "-S", "-c", script], start_new_session=True) as process:
        try:
            yield
        finally:
            os.killpg(process.pid, 9)


def capture(settings: Path, out: Path, options: Sequence[str]) -> int:
    """Capture, and copy the trace to *out*. Return its bytes."""
    words = ["trace", "capture", "--settings", str(settings), "--out", str(out), *options]
    subprocess.run([TEMPER, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    size = out.stat().st_size
    out.unlink()
    return size


def measure(settle: int) -> dict[str, Any]:
    """Return the growth of both agents after each case."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        capturing, settings = stack.enter_context(agent(folder / "capturing"))
        idle, _ = stack.enter_context(agent(folder / "idle"))
        time.sleep(WARM_UP_S)
        before = {pid: memory_of(pid) for pid in (capturing, idle)}
        figures["before"] = {f"{kind}_kib": size for kind, size in before[capturing].items()}
        for case, (times, script, options) in CASES.items():
            with running(script):
                sizes = [capture(settings, folder / "trace", options) for _ in range(times)]
            time.sleep(settle)
            figures[case] = {"traces_mib": round(sum(sizes) / 2**20, 1)}
            for pid, of in ((capturing, ""), (idle, "_idle")):
                for kind, size in memory_of(pid).items():
                    figures[case][f"{kind}_growth_kib{of}"] = size - before[pid][kind]
    return figures


if __name__ == "__main__":
    sys.exit(report(__doc__, measure, settle=15))
