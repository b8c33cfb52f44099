"""A real agent, as an operator runs it: a settings file, the ``temper`` command, its HTTP port."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernel import NotInTime
from traces import OWN

TEMPER = Path(sys.executable).parent / "temper"
LOG = OWN / "agent.log"
SETTINGS = OWN / "agent.toml"
PODS = OWN / "pods.json"
PROFILES = OWN / "profiles"
ENGINE = OWN / "bin/scx_layered"
PORT = 9100
STOPPED_S = 120.0
ANSWER_S = 10.0
LOG_LINES = 12

# Quick to notice, slow to give up: a fault must not wait, and the emulator must be waited for.
PACE: Mapping[str, Mapping[str, Any]] = {
    "scheduler": {
        "engine": str(ENGINE),
        "start_deadline_s": 240.0,
        "stop_deadline_s": 5.0,
        "stats_timeout_s": 5.0,
        "stats_silence_s": 10.0,
        "quiet_s": 0.2,
        "min_interval_s": 1.0,
        "reloads_per_hour": 1000,
        "backoff_s": 1.0,
        "backoff_limit_s": 2.0,
        "crash_budget": 1000,
        "recheck_s": 2.0,
        "steer_s": 0.5,
        "loop_deadline_s": 240.0,
    },
    "pods": {"source": "file", "file": str(PODS), "poll_s": 0.5},
    "observe": {"period_s": 2.0},
    "safe_mode": {"poll_s": 0.5},
    "profiles": {"directory": str(PROFILES)},
    "server": {"listen": f"127.0.0.1:{PORT}"},
}


def write_settings(path: Path, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the pace of the suite with *changes* by section."""
    sections = {
        name: {**PACE.get(name, {}), **changes.get(name, {})} for name in {**PACE, **changes}
    }
    lines = []
    for name, table in sections.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    path.write_text("\n".join(lines) + "\n")


class Agent:
    """A running agent; *port* is where it answers."""

    def __init__(self, settings: Path = SETTINGS, port: int = PORT) -> None:
        self._url = f"http://127.0.0.1:{port}"
        with LOG.open("a") as log:
            self.process = subprocess.Popen(
                [TEMPER, "agent", "--settings", settings],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether its process has not ended."""
        return self.process.poll() is None

    def ask(self, path: str, within_s: float = ANSWER_S) -> Any:
        """Return the agent's answer; an empty table where it gives none."""
        try:
            with urllib.request.urlopen(f"{self._url}{path}", timeout=within_s) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return {}

    def count(self, metric: str) -> float:
        """Return the sum of all series of a metric whose name and labels begin with *metric*."""
        with urllib.request.urlopen(f"{self._url}/metrics", timeout=ANSWER_S) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(metric))

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Return its exit code once it has ended; raise NotInTime where it does not."""
        try:
            return self.process.wait(STOPPED_S)
        except subprocess.TimeoutExpired:
            raise NotInTime(f"the agent has not ended within {STOPPED_S:.0f} s") from None

    def stop(self) -> int:
        """End it as an operator would; return its exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it as a crash would."""
        with suppress(ProcessLookupError):
            self.send(signal.SIGKILL)
        self.process.wait()


def temper(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a ``temper`` command to its end."""
    return subprocess.run(
        [TEMPER, *arguments], capture_output=True, text=True, check=False, timeout=STOPPED_S
    )


def last_words() -> str:
    """Return the end of the agents' log."""
    lines = LOG.read_text(errors="replace").splitlines() if LOG.exists() else []
    return "\n".join(lines[-LOG_LINES:])
