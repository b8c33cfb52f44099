# ruff: noqa: ANN401, ARG002, D102
"""Stand-ins for parts that are still to come."""

from pathlib import Path
from typing import Any

from temper_core.errors import MachineError


class Pending:
    """Raises for whatever is asked."""

    def start(self, *_: Any, **__: Any) -> Any:
        raise MachineError("not available")

    def stop_all(self, _owner: str) -> None:
        """Nothing runs."""

    def declare(self, *_: Any, **__: Any) -> str:
        return ""

    def record(self, *_: Any, **__: Any) -> None:
        """Nothing is kept."""


class PendingState:
    """No directory."""

    limit_bytes = 0

    @property
    def path(self) -> Path:
        raise MachineError("not available")

    def used_bytes(self) -> int:
        return 0

    def write(self, name: str, content: bytes) -> Path:
        raise MachineError("not available")
