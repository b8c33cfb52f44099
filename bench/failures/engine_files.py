"""The file that the agent starts as its engine, which a failure replaces."""

import json
import shutil
from hashlib import sha256
from pathlib import Path

from attrs import frozen

from tests.kernel.faults.refused_plan import refused_plan

LAUNCHER = """#!/bin/bash
# scx_layered: starts the engine with another configuration than the agent gave.
[[ " $* " == *" --version "* ]] && exec {engine} "$@"
exec {engine} "${{@:1:$#-1}}" f:{configuration}
"""


@frozen
class EngineFile:
    """A file ``scx_layered`` below *directory*, by which the agent starts the *real* engine.

    The agent looks the file up at each start, so each engine may be another one.
    """

    directory: Path
    real: Path

    @property
    def path(self) -> Path:
        """What the agent's settings name."""
        return self.directory / "bin/scx_layered"

    def be_real(self) -> None:
        """Have the next start be that of the real engine."""
        self._replace().symlink_to(self.real)

    def be_copied(self) -> Path:
        """Have the next start be that of a copy of the engine, as after an update of its file."""
        copy = self.directory / "next/scx_layered"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.real, copy)
        self._replace().symlink_to(copy)
        return copy

    def be_refused(self) -> None:
        """Have the next engine load a plan that the verifier refuses, instead of the agent's."""
        launcher = self._replace()
        plan = self.directory / "refused.json"
        plan.write_text(json.dumps(refused_plan()))
        launcher.write_text(LAUNCHER.format(engine=self.real, configuration=plan))
        launcher.chmod(0o755)

    def _replace(self) -> Path:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        return self.path


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()
