"""The engine's command line and environment."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from temper_core.scheduler import pre_exec_script
from temper_core.settings.models import SchedulerSettings

NICE = -20
NOT_INHERITED = ("RUST_LOG", "RUST_BACKTRACE", "LD_PRELOAD", "PYTHONPATH")


@frozen
class Launch:
    """How to start the engine once.

    ``config`` is passed in a file below ``run``. ``environment`` is added to the agent's own. With
    ``gated_file``, the kernel's state file, a gate is mounted over that file.
    """

    binary: Path
    config: str = field(repr=False)
    run: Path
    number: int = 0
    watchdog_ms: int = 30_000
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(factory=dict)
    gated_file: Path | None = None

    @property
    def gate_path(self) -> Path:
        """The path of the gate until it is mounted."""
        return self.run / f"engine-{self.number}.gate"

    @property
    def config_path(self) -> Path:
        """The file of the engine's configuration, readable by its user only."""
        return self.run / f"engine-{self.number}.json"


def flags(settings: SchedulerSettings, hint_map: Path | None) -> tuple[str, ...]:
    """Return the flags that follow from *settings*, and from the map of a steered plan."""
    hints = () if hint_map is None else ("--task-hint-map", str(hint_map))
    return ("--max-exec-us", str(settings.max_exec_us), *hints)


def command(launch: Launch) -> list[str]:
    """Return the words that start the engine in a process that is set up for it."""
    gate = (
        ("", "") if launch.gated_file is None else (str(launch.gate_path), str(launch.gated_file))
    )
    return [
        *(sys.executable, "-I", "-S", pre_exec_script.__file__),
        *(str(os.getpid()), str(NICE)),
        *gate,
        *(str(launch.binary), *launch.arguments, f"f:{launch.config_path}"),
    ]


def environment(launch: Launch) -> dict[str, str]:
    """Return the environment of the engine."""
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    ours = {
        "RUST_BACKTRACE": "0",
        "NO_COLOR": "1",
        "SCX_TIMEOUT_MS": str(launch.watchdog_ms),
    }
    return {**inherited, **ours, **launch.environment}
