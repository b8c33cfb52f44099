"""The dashboard in the agent: the page, its files, and what it follows."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from temper_core import (
    Answer,
    Endpoint,
    InputError,
    NodeLookup,
    OpenInstrument,
    Request,
    Snapshot,
)
from temper_plugin_dashboard.history import History
from temper_plugin_dashboard.options import Options
from temper_plugin_dashboard.page_files import ASSETS, PageFiles, media_type
from temper_plugin_dashboard.profiles_in_force import profiles_in_force
from temper_plugin_dashboard.snapshot_stream import SnapshotStream

PAGE = "index.html"
NOT_FOUND = 404
LONGEST_NUMBER = 30


class Dashboard(OpenInstrument):
    """Serves the page at ``/``. The page reads all else from the agent's own endpoints."""

    def __init__(self, options: Options, lookup: NodeLookup) -> None:
        self._options = options
        self._lookup = lookup
        self._history = History()
        self._snapshots = SnapshotStream()
        self._files = PageFiles()

    def tell(self, snapshot: Snapshot) -> None:
        """Keep the figures of the window, and send the snapshot to open pages."""
        self._history.add(snapshot)
        self._snapshots.publish(snapshot)

    def endpoints(self) -> Iterable[Endpoint]:
        """Serve the page, its files, its settings, its figures and its stream."""
        return (
            Endpoint("get-dashboard", "GET", "/", "The page.", self._page, media_type="text/html"),
            Endpoint(
                "get-dashboard-file",
                "GET",
                "/dashboard/files/{file:path}",
                "A file of the page.",
                self._asset,
                parameters={"file": "The path of the file."},
            ),
            Endpoint(
                "get-dashboard-settings",
                "GET",
                "/dashboard/settings",
                "Whether the page offers actions, and the Perfetto that it may open.",
                lambda _: {
                    "actions": self._options.actions,
                    "perfetto": self._options.perfetto,
                },
            ),
            Endpoint(
                "get-dashboard-history",
                "GET",
                "/dashboard/history",
                "The node's use of CPUs, pressure and violations in the last 720 windows.",
                self._figures,
                parameters={"since": "Only windows that ended later, in seconds since 1970."},
            ),
            Endpoint(
                "get-profiles-in-force",
                "GET",
                "/dashboard/profiles",
                "The profiles of the node's pods, with the measurements that support them.",
                lambda _: {"profiles": profiles_in_force(self._lookup.plan)},
            ),
            Endpoint(
                "follow-snapshots",
                "GET",
                "/dashboard/snapshots",
                "The time and mode of each new snapshot, as server-sent events.",
                lambda _: Answer(media_type="text/event-stream", stream=self._snapshots.stream()),
                media_type="text/event-stream",
            ),
        )

    def close(self) -> None:
        """End the streams."""
        self._snapshots.close()

    def _figures(self, request: Request) -> Mapping[str, Any]:
        return self._history.document(_seconds(request.query.get("since", "0")))

    def _page(self, _request: Request) -> Answer:
        path = ASSETS / PAGE
        return Answer(media_type=media_type(path), file=path)

    def _asset(self, request: Request) -> Answer:
        path = self._files.find(request.query["file"])
        if path is None:
            return Answer(b"there is no such file\n", "text/plain", NOT_FOUND)
        return Answer(media_type=media_type(path), file=path)


def _seconds(text: str) -> float:
    try:
        seconds = float(text) if len(text) <= LONGEST_NUMBER else math.nan
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise InputError(f"since must be a number of seconds, not {text[:20]!r}")
    return seconds
