"""The instrument, which delegates each call to one of its parts."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from temper_core import (
    Check,
    CheckState,
    Endpoint,
    EventKind,
    EventLevel,
    Histogram,
    InstrumentContext,
    Metric,
    MetricFamily,
    MetricSample,
    OpenInstrument,
    Snapshot,
)
from temper_plugin_run_delay.delays import delays_of, slow_pods
from temper_plugin_run_delay.lamp import Lamp
from temper_plugin_run_delay.limits import Limits
from temper_plugin_run_delay.live import Live
from temper_plugin_run_delay.logs import Logs
from temper_plugin_run_delay.routes import Routes
from temper_plugin_run_delay.summaries import Summaries
from temper_plugin_run_delay.trial import Trials

KIB = 1024
BOUNDS = (0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0)
RUN_DELAY = MetricFamily(
    "temper_run_delay_cpus",
    "Run delay of pods in each window, in CPUs.",
    kind="histogram",
)


class RunDelay(OpenInstrument):
    """Logs the run delay of pods. The README lists its features."""

    def __init__(self, context: InstrumentContext, limits: Limits) -> None:
        self._context = context
        self._limits = limits
        self._live = Live()
        self._logs = Logs(context.state, limits.log_kib * KIB)
        self._summaries = Summaries(context, self._logs, limits.summary_s)
        self._trials = Trials(context)
        self._histogram = Histogram(BOUNDS)
        self._slow: frozenset[str] = frozenset()
        self._lamp = Lamp(context.state, limits.lamps)

    def tell(self, snapshot: Snapshot) -> None:
        """Log the snapshot's delays, count them, and pass them on to the streams."""
        self._lamp.light()
        delays = delays_of(snapshot)
        with self._context.charge("log"):
            closed = self._logs.append(snapshot.at, delays)
        for delay in delays.values():
            self._histogram = self._histogram.with_value(delay)
        self._live.publish(delays)
        if closed:
            self._context.record(
                "delay_log_closed", closed, f"larger than {self._limits.log_kib} KiB"
            )
        self._record_changes(delays)

    def section(self, snapshot: Snapshot) -> Mapping[str, Any]:
        """Return the delays, the pods that wait too long, and the running helper."""
        delays = delays_of(snapshot)
        slow = sorted(slow_pods(delays, self._limits.waiting))
        return {"delays": delays, "slow": slow, "helper": self._summaries.pid}

    def endpoints(self) -> Iterable[Endpoint]:
        """Return the page, the stream, the logs, summaries and trials."""
        return Routes(self._live, self._logs, self._summaries, self._trials).endpoints()

    def metrics(self) -> Iterable[Metric]:
        """Return the histogram of all pods."""
        yield RUN_DELAY.metric([MetricSample(self._histogram)])

    def checks(self) -> Iterable[Check]:
        """Return whether a pod waits too long."""
        if not self._slow:
            yield Check("run-delay", CheckState.OK, "no pod waits too long for a CPU")
            return
        detail = f"these pods wait too long for a CPU: {', '.join(sorted(self._slow))}"
        yield Check("run-delay", CheckState.WARNING, detail, "raise their CPU requests")

    def events(self) -> Iterable[EventKind]:
        """Return the kinds of events."""
        yield EventKind("delay_log_closed", "A log is full, and the next begins.")
        summary = "A pod, the subject, waits too long for a CPU."
        yield EventKind("run_delay_high", summary, EventLevel.WARNING)

    def close(self) -> None:
        """Give the lamp back, and end streams and trials. The agent ends the helper."""
        self._lamp.give_back()
        self._live.close()
        self._trials.release()

    def _record_changes(self, delays: Mapping[str, float]) -> None:
        slow = slow_pods(delays, self._limits.waiting)
        for pod in sorted(slow - self._slow):
            reason = json.dumps({"cpus": round(delays[pod], 3), "limit": self._limits.waiting})
            self._context.record("run_delay_high", pod, reason)
        self._slow = slow
