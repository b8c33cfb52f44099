"""The caps that a node is to have, from its NodeTwin: an object, or a file with it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from attrs import frozen

from temper_core import DocumentError, foreign_writer, parse_json, parse_yaml, read_text
from temper_plugin_power.resources.fields import text_at, value_at

LARGEST_BYTES = 1024 * 1024
YAML = (".yaml", ".yml")
EARLY_S = 60.0
"""The clock of the writer may be ahead by so much."""
MOST_WATTS = 100_000


@frozen
class CapSpec:
    """The caps of a node: watts of each package or GPU, or percent of its maximum. None is none."""

    watts: float | None
    percent: float | None
    at: float
    """When it was last written, in seconds since 1970."""
    gpu_watts: float | None = None
    gpu_percent: float | None = None

    @property
    def asks_for_cpu(self) -> bool:
        """Whether there is a cap of CPUs."""
        return self.watts is not None or self.percent is not None

    @property
    def asks_for_gpu(self) -> bool:
        """Whether there is a cap of GPUs."""
        return self.gpu_watts is not None or self.gpu_percent is not None

    def age_s(self, now: float) -> float:
        """Return its age in seconds."""
        return now - self.at

    def is_stale(self, now: float, timeout_s: float) -> bool:
        """Return whether it is older than *timeout_s*, or of the future."""
        return not -EARLY_S <= self.age_s(now) <= timeout_s


def read_spec(path: Path, node: str) -> CapSpec:
    """Return the caps in the file at *path*, which must be a NodeTwin of *node*.

    Raises DocumentError, also for a file that another user may change.
    """
    _refuse_writers(path)
    text = read_text(path, largest_bytes=LARGEST_BYTES)
    source = str(path)
    if path.suffix in YAML:
        documents = [each for each in parse_yaml(text, source=source, aliases=False) if each]
    else:
        documents = [parse_json(text, source=source)]
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise DocumentError(source, ["must be one NodeTwin"])
    return spec_of(documents[0], node, source, _written_at(path))


def spec_of(
    document: Mapping[str, object], node: str, source: str, written_at: float | None = None
) -> CapSpec:
    """Return the caps of a NodeTwin, which must be of *node*. *source* names it in messages.

    *written_at* is its time in seconds since 1970 if the file has none. Raises DocumentError.
    """
    if document.get("kind") != "NodeTwin":
        raise DocumentError(source, ["kind: must be NodeTwin"])
    named = text_at(document, "spec.nodeName")
    if named != node:
        problem = f"spec.nodeName: must be {node!r}, the name of this node, not {named[:253]!r}"
        raise DocumentError(source, [problem])
    key, gpu = "spec.cpu.packagePowerCap", "spec.gpu.powerCap.cap"
    return CapSpec(
        watts=_number(document, f"{key}Watts", 1, MOST_WATTS, source),
        percent=_number(document, f"{key}PctOfMax", 0.1, 100, source),
        at=_said_at(document, source, written_at),
        gpu_watts=_number(document, f"{gpu}WattsPerGpu", 1, MOST_WATTS, source),
        gpu_percent=_number(document, f"{gpu}PctOfMax", 0.1, 100, source),
    )


def _number(
    document: Mapping[str, object], key: str, least: float, most: float, source: str
) -> float | None:
    value = value_at(document, key)
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:
        raise DocumentError(source, [f"{key}: must be a number from {least} to {most}"])
    return float(value)


def _said_at(document: Mapping[str, object], source: str, written_at: float | None) -> float:
    """Return when the operator has last updated the object, else *written_at*."""
    text = text_at(document, "status.lastUpdated")
    if not text and written_at is not None:
        return written_at
    try:
        updated = datetime.fromisoformat(text)
        return updated.replace(tzinfo=updated.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError) as error:
        problem = f"status.lastUpdated: must be a time of RFC 3339, not {text[:40]!r}"
        raise DocumentError(source, [problem]) from error


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError as error:
        raise DocumentError(str(path), [error.strerror or str(error)]) from error


def _refuse_writers(path: Path) -> None:
    """Raise DocumentError if a user other than root and this one may change the file."""
    if who := foreign_writer(path):
        problem = f"{who}: only root and the agent's user may be able to change the file"
        raise DocumentError(str(path), [problem])
