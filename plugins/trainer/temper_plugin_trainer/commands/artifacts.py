"""The directory of a training's record, which runs as root must not share with other users."""

from pathlib import Path

from temper_core import InputError, foreign_writer
from temper_core.console import printable


def artifacts_directory(artifacts: Path, workload: str) -> Path:
    """Return the directory of *workload* in *artifacts*, made if missing. Raise InputError."""
    if Path(workload).name != workload or workload.startswith("."):
        raise InputError(f"--workload {printable(workload)}: must be a plain name")
    directory = artifacts / workload
    _require_own(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror or error}") from error
    _require_own(directory)
    return directory


def _require_own(directory: Path) -> None:
    """Raise InputError if another user may change *directory*, or what is above it.

    Links of such a user could lead what is written there to any file.
    """
    if who := foreign_writer(directory):
        raise InputError(
            f"--artifacts: {printable(who)}, so links there could lead the record to other files; "
            "name a directory that only this user or root may write"
        )
