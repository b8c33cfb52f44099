"""The whole agent for a minute beside 1,000 threads: CPU as a share of a core, and memory.

python bench/always_on.py [--seconds S] [--threads N]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from observe_tick import threads_running

SCRAPE_EVERY_S = 15
SETTLE_S = 8


def measure(seconds: float, threads: int) -> dict[str, Any]:
    """Run the agent observing, scraped every 15 s, and return its use after it settled."""
    with tempfile.TemporaryDirectory() as directory, threads_running(threads, pause_s=1.0):
        agent = _start(Path(directory))
        try:
            time.sleep(SETTLE_S)
            before, began = _cpu_s(agent.pid), time.monotonic()
            while time.monotonic() - began < seconds:
                time.sleep(min(SCRAPE_EVERY_S, seconds))
                _scrape()
            used_s, window_s = _cpu_s(agent.pid) - before, time.monotonic() - began
            resident = _resident_mib(agent.pid)
        finally:
            agent.terminate()
            agent.wait()
    return {
        "threads_made": threads,
        "window_s": round(window_s, 1),
        "core_share_percent": round(100 * used_s / window_s, 3),
        "rss_mib": resident,
    }


def _start(directory: Path) -> "subprocess.Popen[bytes]":
    settings = directory / "agent.toml"
    settings.write_text(
        f'run_directory = "{directory}/run"\nstate_directory = "{directory}"\n'
        '[server]\nlisten = "127.0.0.1:9199"\n'
    )
    temper = str(Path(sys.executable).with_name("temper"))
    command = [temper, "agent", "--observe-only", "--settings", str(settings)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def _scrape() -> None:
    with urllib.request.urlopen("http://127.0.0.1:9199/metrics", timeout=10) as answer:
        answer.read()


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What the agent costs while it only watches.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=1_000)
    options = parser.parse_args()
    print(json.dumps(measure(options.seconds, options.threads), indent=1))
