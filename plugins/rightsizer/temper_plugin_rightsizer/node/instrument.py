"""The rightsizer in the agent: its endpoint, its metrics, and the collector behind them."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Self

from attrs import fields

from temper_core import (
    DiskThread,
    Endpoint,
    InputError,
    InstrumentContext,
    Metric,
    OpenInstrument,
    Request,
    Snapshot,
)
from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.families import hottest_threads
from temper_plugin_rightsizer.node.collector import Collector
from temper_plugin_rightsizer.node.document import report
from temper_plugin_rightsizer.node.filling import (
    FILLING_SCHEMA,
    LARGEST_FILLING_BYTES,
    fill_in,
)
from temper_plugin_rightsizer.options import HOURS_OF_DAY, MIB, MOST_DAYS, Options
from temper_plugin_rightsizer.store.history import HOUR_S, History
from temper_plugin_rightsizer.store.keeper import Keeper

MINUTE_S = 60


class Rightsizer(OpenInstrument):
    """Publishes what the *collector* has learned in the last hours, by the *options*."""

    def __init__(self, collector: Collector, options: Options) -> None:
        self._collector = collector
        self._options = options

    @classmethod
    def of(cls, options: Options, context: InstrumentContext) -> Self:
        """Create a rightsizer with its history in the state directory."""
        history = History(
            lambda: context.state.path,
            options.history_mib * MIB,
            keep_s=options.keep_days * HOURS_OF_DAY * HOUR_S,
        )
        startup_s = options.startup_minutes * MINUTE_S
        keeper = Keeper(history, DiskThread("the history", context.charge))
        collector = Collector(keeper, context.lookup, startup_s=startup_s)
        return cls(collector, options)

    def tell(self, snapshot: Snapshot) -> None:
        """Add the window to the interval."""
        self._collector.tell(snapshot)

    def let_go(self) -> None:
        """Have the reports say that nothing is learned any more."""
        self._collector.stop()

    def defects(self) -> Iterable[str]:
        """Return why the history is not kept, and why nothing is learned."""
        return tuple(filter(None, (self._collector.keeper.defect, self._collector.stopped)))

    def endpoints(self) -> Iterable[Endpoint]:
        """Serve ``/rightsize`` and ``/rightsize/history``."""
        return (
            Endpoint(
                "get-rightsize",
                "GET",
                "/rightsize",
                "Recommended requests and limits of the node's containers, with the reasons.",
                self._report,
                parameters={
                    "hours": "The hours of history that the advice follows from.",
                    "demand": "1 for the histograms of each container, for a cluster's report.",
                    **{choice.name: choice.metadata["summary"] for choice in fields(AdviceOptions)},
                },
            ),
            Endpoint(
                "fill-rightsize",
                "POST",
                "/rightsize/history",
                "Fill in the history from before the agent's own.",
                lambda request: fill_in(self._collector, request.content, time.time()),
                acts=True,
                largest_body_bytes=LARGEST_FILLING_BYTES,
                body_schema=FILLING_SCHEMA,
            ),
        )

    def metrics(self) -> Iterable[Metric]:
        """Return the use of each container's busiest thread in the last window."""
        return (hottest_threads(self._collector.latest),)

    def close(self) -> None:
        """Keep the interval that is not over."""
        self._collector.close()

    def _report(self, request: Request) -> Mapping[str, Any]:
        window_s = _hours(request.query.get("hours"), self._options.window_hours) * HOUR_S
        options = AdviceOptions.of(request.query)
        has_demand = _flag(request.query.get("demand", "0"))
        return report(
            self._collector,
            window_s,
            time.time(),
            options,
            has_demand=has_demand,
            prices=self._options.prices,
        )


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise InputError(f"demand must be 0 or 1, not {text[:20]!r}")
    return text == "1"


def _hours(text: str | None, usual: int) -> int:
    most = MOST_DAYS * HOURS_OF_DAY
    if text is None:
        return usual
    is_short = len(text) <= len(str(most))
    if not (is_short and text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise InputError(f"hours must be a whole number from 1 to {most}, not {text[:20]!r}")
    return int(text)
