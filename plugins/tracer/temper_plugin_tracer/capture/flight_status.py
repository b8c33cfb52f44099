"""The status that the flight recorder's helper process reports to the agent."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from temper_core import InputError, parse_json, read_text
from temper_plugin_tracer.capture.unlinked_file import PARTIAL

FLIGHT = ".flight"
"""The suffix of the file."""
LARGEST = 4096


@frozen
class FlightStatus:
    """The state of the recording.

    Attributes:
        events: Events so far, overwritten ones included.
        held_s: The time that the fullest ring holds: traces have no more.
        cpu_ratio: Share of one core that the recording costs, as a mean of some seconds.
        kernel_s: CPU time of the kernel's part so far, in the threads that were running.
        own_s: CPU time of the helper process so far.

    """

    events: int = 0
    held_s: float = 0.0
    cpu_ratio: float = 0.0
    kernel_s: float = 0.0
    own_s: float = 0.0


def write_status(directory: Path, capture: str, status: FlightStatus) -> None:
    """Replace the file. A full disk leaves the old one."""
    path = directory / f"{capture}{FLIGHT}"
    partial = directory / f"{capture}{FLIGHT}{PARTIAL}"
    with suppress(OSError):
        partial.unlink(missing_ok=True)
        with partial.open("x") as file:  # follows no link
            file.write(json.dumps(asdict(status)))
        partial.replace(path)


def read_status(directory: Path, capture: str) -> dict[str, Any]:
    """Return the fields of the status, none if there is no file yet."""
    path = directory / f"{capture}{FLIGHT}"
    with suppress(InputError):
        document = parse_json(read_text(path, largest_bytes=LARGEST), source=str(path))
        if isinstance(document, dict):
            return document
    return {}
