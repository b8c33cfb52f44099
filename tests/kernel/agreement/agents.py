"""The agents of the walk: one enforces, others only observe, each in a tier of its own."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from attrs import frozen

TEMPER = Path(sys.executable).parent / "temper"
DIRECTORY = Path("/run/agreement")
PODLIST = DIRECTORY / "pods.json"
ENGINE_PATIENCE_S = 900.0
PERIOD_S = 20.0
SETTINGS = """
[scheduler]
engine = "{engine}"
start_deadline_s = 240.0

[pods]
source = "file"
file = "{pods}"
poll_s = 1.0

[observe]
tier = "{tier}"
detail_threads = {detail_threads}
period_s = {period_s}
budget_cpu_ratio = 1.0

[server]
listen = "127.0.0.1:{port}"
socket = "{socket}"
"""


class NotInTime(Exception):  # noqa: N818 - reads as the fact it reports
    """An agent has not come to what was waited for."""


@frozen
class Seen:
    """A document of ``/observe``; ``at`` is a moment just before the look that it tells of."""

    document: dict[str, object]
    at: float


class Agent:
    """A running agent."""

    def __init__(self, engine, tier, detail_threads=256, *, port=9100, enforce=False):
        self._port = port
        settings = DIRECTORY / f"{port}.toml"
        settings.write_text(
            SETTINGS.format(
                engine=engine,
                pods=PODLIST,
                tier=tier,
                detail_threads=detail_threads,
                period_s=PERIOD_S,
                port=port,
                socket=DIRECTORY / f"{port}.sock",
            )
        )
        only = [] if enforce else ["--observe-only"]
        self._log = DIRECTORY / f"{port}.log"
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [TEMPER, "agent", "--settings", settings, *only], stdout=log, stderr=log
            )

    def see(self, top):
        """Return what it has seen last, with so many threads; raise OSError without an answer."""
        url = f"http://127.0.0.1:{self._port}/observe?top={top}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            document = json.load(answer)
        return Seen(document, datetime.fromisoformat(document["at"]).timestamp())

    def wait_for(self, mode):
        """Wait until it is in *mode* and has seen a window; raise NotInTime where it does not."""
        until = time.monotonic() + ENGINE_PATIENCE_S
        while time.monotonic() < until and self._process.poll() is None:
            with suppress(OSError):
                seen = self.see(top=1).document
                if seen["mode"] == mode and seen["window_s"]:
                    return
            time.sleep(1)
        last = "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
        raise NotInTime(f"the agent is not {mode}; its log ends with\n{last}")

    def stop(self):
        """End it as an operator would; return its exit code."""
        self._process.terminate()
        return self._process.wait(60)


def temper(*arguments):
    """Run a command of temper's; return its exit code, and what it says on either stream."""
    ended = subprocess.run(
        [TEMPER, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
    return ended.returncode, ended.stdout.strip(), ended.stderr.strip()
