"""The tracer in the agent: its endpoints, its section, its metrics, and the watch behind them."""

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Self

from temper_core import (
    Endpoint,
    InstrumentContext,
    Metric,
    OpenInstrument,
    Request,
    Snapshot,
    WakeWindow,
)
from temper_plugin_tracer.document import wakes_document, window_document
from temper_plugin_tracer.metrics import wait_metrics
from temper_plugin_tracer.options import Options
from temper_plugin_tracer.request import SCHEMA, parse_wakes_request
from temper_plugin_tracer.wait_totals import WaitTotals
from temper_plugin_tracer.watch import WakeWatch

LARGEST_SECTION_BYTES = 192 * 1024
"""Size of the section as JSON. The agent drops a section of more than 256 KiB."""


class Tracer(OpenInstrument):
    """Publishes the windows of a ``WakeWatch``. *totals* accumulates them."""

    def __init__(self, watch: WakeWatch, totals: WaitTotals) -> None:
        self._watch = watch
        self._totals = totals
        self._last: Snapshot | None = None
        self._shown: tuple[WakeWindow, Mapping[str, Any]] | None = None

    @classmethod
    def of(cls, options: Options, context: InstrumentContext) -> Self:
        """Create a tracer whose windows are charged to its line of the agent's overhead."""
        totals = WaitTotals()
        watch = WakeWatch(
            is_wanted=options.edges, charge=lambda: context.charge("windows"), take=totals.add
        )
        return cls(watch, totals)

    def tell(self, snapshot: Snapshot) -> None:
        """Start watching if requested. *snapshot* names the threads of the next window."""
        self._last = snapshot
        self._watch.turn(time.monotonic(), snapshot)

    def section(self, snapshot: Snapshot) -> Mapping[str, Any] | None:
        """Return the last window, unless it is older than a few periods."""
        window = self._watch.recent(time.monotonic(), snapshot.observing.period_s)
        if window is None:
            self._shown = None
            return None
        if self._shown is None or self._shown[0] is not window:
            self._shown = window, fitting(window_document(window), LARGEST_SECTION_BYTES)
        return self._shown[1]

    def defects(self) -> Iterable[str]:
        """Return why no windows can be taken, while they are requested."""
        return self._watch.defects(time.monotonic())

    def endpoints(self) -> Iterable[Endpoint]:
        """Serve ``/wakes``."""
        return (
            Endpoint(
                "get-wakes",
                "GET",
                "/wakes",
                "Wake-ups, and waits with the threads that ran meanwhile: the last window, if any.",
                lambda _: wakes_document(self._watch.state),
            ),
            Endpoint(
                "watch-wakes",
                "PUT",
                "/wakes",
                "Watch wake-ups and waits for some seconds, in windows that the budget allows.",
                self._begin,
                acts=True,
                body_schema=SCHEMA,
            ),
        )

    def metrics(self) -> Iterable[Metric]:
        """Return the sums of all windows, for the pods and layers of the last snapshot."""
        return wait_metrics(self._totals, self._last)

    def close(self) -> None:
        """End the open window and unload the BPF object."""
        self._watch.close()

    def _begin(self, request: Request) -> Any:  # noqa: ANN401 - JSON
        self._watch.want(parse_wakes_request(request.json()).seconds)
        return wakes_document(self._watch.state)


def fitting(document: Mapping[str, Any], largest_bytes: int) -> Mapping[str, Any]:
    """Return a window's document, with fewer edges and blockings if its JSON is too large.

    Both lists are sorted in descending order, so the smallest are dropped.
    """
    while (document["edges"] or document["blockings"]) and (
        len(json.dumps(document)) > largest_bytes
    ):
        halves = {key: document[key][: len(document[key]) // 2] for key in ("edges", "blockings")}
        document = {**document, **halves}
    return document
