"""The agent as an operator uses it: the ``temper`` command, its settings file, its HTTP port."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel import NotInTime

TEMPER = Path(sys.executable).parent / "temper"
DIRECTORY = Path("/run/demo")
SETTINGS = DIRECTORY / "agent.toml"
PODLIST = DIRECTORY / "pods.json"
LOG = DIRECTORY / "agent.log"
ADDRESS = "127.0.0.1:9100"
LOG_LINES = 25


@dataclass(frozen=True)
class Pace:
    """Deadline of an agent for enforcing a plan, and periods of ticks and requests, in seconds."""

    enforcing_s: float
    loading_s: float
    look_s: float
    ask_s: float


# An attach takes half a minute in the emulator, and ten times that on a slow host.
BRISK = Pace(enforcing_s=900.0, loading_s=800.0, look_s=5.0, ask_s=1.0)
# On a busy host it takes many minutes. Every tick and every answer adds to it.
PATIENT = Pace(enforcing_s=1200.0, loading_s=1000.0, look_s=60.0, ask_s=5.0)


def write_settings(engine: Path, pace: Pace = BRISK) -> None:
    """Write settings for a node that is slow to attach and quick to follow its pods."""
    DIRECTORY.mkdir(exist_ok=True)
    SETTINGS.write_text(
        f"""
        [scheduler]
        engine = "{engine}"
        start_deadline_s = {pace.loading_s}
        quiet_s = 1.0
        min_interval_s = 1.0

        [pods]
        source = "file"
        file = "{PODLIST}"
        poll_s = 1.0

        [observe]
        period_s = {pace.look_s}

        [server]
        listen = "{ADDRESS}"
        """
    )


class Agent:
    """A running agent. The command *under*, if given, sets up the process and executes it."""

    def __init__(self, pace: Pace = BRISK, under: Sequence[str] = ()) -> None:
        self._pace = pace
        with LOG.open("a") as log:
            self._process = subprocess.Popen(  # noqa: S603 - this checkout's own command
                [*under, TEMPER, "agent", "--settings", SETTINGS],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def ask(self, path: str) -> Any:  # noqa: ANN401 - JSON may say anything
        """Return the agent's answer, or an empty table while there is none."""
        try:
            with urllib.request.urlopen(f"http://{ADDRESS}{path}", timeout=30) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return {}

    def metric(self, name: str, label: str) -> float:
        """Return the sample of that name and label value, 0 without one."""
        with urllib.request.urlopen(f"http://{ADDRESS}/metrics", timeout=30) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(f"{name}{{") and f'"{label}"' in line:
                    return float(line.rpartition(" ")[2])
        return 0.0

    def wait_for(self, mode: str, generation: int = 0) -> Any:  # noqa: ANN401 - JSON may say anything
        """Wait until the agent is in *mode*. Return that observation, or raise NotInTime."""
        start, observation = time.monotonic(), {}
        while time.monotonic() - start < self._pace.enforcing_s:
            if self._process.poll() is not None:
                raise NotInTime(f"the agent has ended with exit code {self._process.returncode}")
            observation = self.ask("/observe?top=500")
            if observation.get("mode") == mode and observation["generation"] >= generation:
                return observation
            time.sleep(self._pace.ask_s)
        raise NotInTime(
            f"not {mode} within {self._pace.enforcing_s:.0f} s: {_mode_of(observation)}"
        )

    def settled(self) -> Any:  # noqa: ANN401 - JSON may say anything
        """Return an observation whose window lies wholly after this call."""
        for _ in range(2):
            before = self.wait_for("enforcing")["at"]
            while self.wait_for("enforcing")["at"] == before:
                time.sleep(1)
        return self.wait_for("enforcing")

    def kill(self) -> None:
        """End the agent as a crash would."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """End the agent as an operator would. Return its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            raise NotInTime("the agent has not ended 60 s after SIGTERM") from None


def temper(*arguments: str) -> str:
    """Run a ``temper`` command. Return what it prints, errors included."""
    ended = subprocess.run(  # noqa: S603 - this checkout's own command
        [TEMPER, *arguments], capture_output=True, text=True, check=False
    )
    return (ended.stdout + ended.stderr).strip()


def last_words() -> str:
    """Return the end of the agents' log."""
    return "\n".join(LOG.read_text(errors="replace").splitlines()[-LOG_LINES:])


def _mode_of(observation: dict[str, Any]) -> str:
    return " ".join(str(observation.get(key, "")) for key in ("mode", "reason", "detail")).strip()
