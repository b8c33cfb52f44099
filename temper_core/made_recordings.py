"""Recordings of a node from snapshots, and the snapshots of one, for tests.

Public through ``temper_core.testing``.
"""

from pathlib import Path

from attrs import evolve

from temper_core.errors import InputError
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.records.snapshots import Snapshot
from temper_core.rehearsal.reader import Recording
from temper_core.rehearsal.recording_format import recording_document
from temper_core.rehearsal.writer import RecordingWriter
from temper_core.settings.models import Settings

LARGEST_BYTES = 64 << 20


def make_recording(path: Path, *snapshots: Snapshot, settings: Settings | None = None) -> Path:
    """Write *snapshots*, oldest first, as ``temper observe --record`` does. Return *path*.

    The file is packed if its name ends in ``.gz``. Raises InputError if it exists already, or if a
    snapshot is of another machine than the first.
    """
    writer = RecordingWriter(path, LARGEST_BYTES, source="observer")
    for snapshot in snapshots:
        document = recording_document(
            _recorded(snapshot), settings or Settings(), ProfileCatalogue()
        )
        problem = writer.add(document)
        if problem:
            raise InputError(f"{path}: {problem}")
    writer.close("made")
    return path


def recorded_snapshots(path: Path) -> list[Snapshot]:
    """Return the snapshots of a recording, oldest first. Raise DocumentError for a misfit."""
    return [moment.snapshot for moment in Recording(path).moments()]


def _recorded(snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* without a plan that has no layers, which no node has."""
    has_layers = snapshot.plan is not None and snapshot.plan.layers
    return snapshot if has_layers else evolve(snapshot, plan=None)
