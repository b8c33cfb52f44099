"""What is done to an enforcing agent meanwhile: trials, safe mode, and a killed engine."""

import os
import signal
import time
from pathlib import Path

from attrs import frozen

from bench.soak.churn import Churn
from temper_core import ask_agent
from temper_core.settings import Settings

ENGINE = "scx_layered"
SAFE_S = 3.0
TRIAL_S = 5.0
PROFILE = """
schema_version = 1
id = "soak"

[fingerprint]
processes = ["chosen-by-trial-alone"]

[[thread_groups]]
name = "naps"
match = [{ comm_prefix = "ladder-nap" }]
treatment = "boost"
"""


@frozen
class Disturber:
    """Acts on the agent with the process id *agent*. *safe_mode* is the file that asks for it."""

    agent: int
    settings: Settings
    safe_mode: Path
    churn: Churn

    def kill_engine(self) -> None:
        """Kill the engine. Raise OSError where none runs."""
        os.kill(engine_of(self.agent), signal.SIGKILL)

    def ask_for_safe_mode(self) -> None:
        """Ask for safe mode, and take it back after three seconds."""
        self.safe_mode.write_text("soak")
        time.sleep(SAFE_S)
        self.safe_mode.unlink()

    def try_a_profile(self) -> None:
        """Have a pod in a trial for five seconds. Raise TemperError where that is refused."""
        body = {"profile": PROFILE, "pods": [self.churn.middle], "seconds": 60}
        begun = ask_agent("/trials", method="POST", body=body, settings=self.settings)
        time.sleep(TRIAL_S)
        ask_agent(f"/trials/{begun['id']}", method="DELETE", settings=self.settings)


def engine_of(agent: int, proc: Path = Path("/proc")) -> int:
    """Return the process id of an agent's engine; raise ProcessLookupError without one."""
    tasks = (proc / str(agent) / "task").glob("*/children")
    for child in " ".join(task.read_text() for task in tasks).split():
        if (proc / child / "comm").read_text().strip() == ENGINE:
            return int(child)
    raise ProcessLookupError(f"{agent} has no engine")
