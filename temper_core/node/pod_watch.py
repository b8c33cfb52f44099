"""The node's pods as last read. When the source fails, the last pods stay in force."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import structlog

from temper_core.bounded_text import shortened
from temper_core.errors import InputError, MachineError, PluginError
from temper_core.plugin_host import Contribution, PluginHost, plain_record
from temper_core.records.contributions import OpenPodSource, PodSource, PodSourceContext, Staleness
from temper_core.records.executions import ExecutionNews
from temper_core.records.pods import Pod
from temper_core.suggestions import did_you_mean

FIRST_PAUSE_S = 10.0
LONGEST_PAUSE_S = 300.0
QUIET_S = 30.0
"""Seconds between two looks if the source signals its changes."""
SHORTEST_REST_S = 0.2
"""Least seconds between two looks that the source asks for itself."""
LOOKS_AFTER_CHANGE = 3
"""Quick looks after a change. The processes of new pods are still starting."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class PodWatch:
    """Reads one pod source, and keeps its last pods.

    ``defect`` is the reason why the pods may be stale, empty while the source answers.
    """

    def __init__(
        self,
        host: PluginHost,
        plugin: str,
        source: OpenPodSource,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pods: tuple[Pod, ...] = ()
        self.defect = ""
        self._host = host
        self._plugin = plugin
        self._source = source
        self._clock = clock
        self._answered_at = clock()
        self._pause_s = FIRST_PAUSE_S
        self._retry_at: float | None = None
        self._descriptor = -1
        self._looks_soon = 0
        self._staleness: Staleness | None = None
        self._again_in_s = math.inf

    @property
    def age_s(self) -> float:
        """Seconds since the source last confirmed its pods."""
        return self._clock() - self._answered_at

    def fileno(self) -> int:
        """Return the source's descriptor, readable after a change, or -1 without one."""
        return self._descriptor

    def rest_s(self, poll_s: float) -> float:
        """Return the seconds until the next look, unless the source signals a change before."""
        is_polled = self._descriptor < 0 or self._looks_soon
        rest_s = poll_s if is_polled else max(QUIET_S, poll_s)
        return min(rest_s, max(SHORTEST_REST_S, self._again_in_s))

    def executed(self, news: ExecutionNews) -> float:
        """Pass executions to the source. Return the seconds until its next read."""
        with suppress(PluginError):  # counted and logged by the host
            self._host.call(self._plugin, self._pass_on, news, part="executions")
        return self._again_in_s

    def look(self) -> bool:
        """Read the source. Return whether the pods have changed."""
        try:
            answer = self._host.call(self._plugin, self._asked, items=Pod, allows=(MachineError,))
        except (MachineError, PluginError) as error:
            self._descriptor, self._again_in_s = -1, math.inf
            self._note_failure(error)
            self._try_again_later()
            return False
        self._pause_s = FIRST_PAUSE_S
        self._retry_at = None
        pods = tuple(sorted(answer, key=lambda pod: (pod.namespace, pod.name, pod.uid)))
        self._note_answer(self._staleness)
        has_changed = pods != self.pods
        if has_changed:
            self.pods = tuple(self._kept(pods))
        self._looks_soon = LOOKS_AFTER_CHANGE if has_changed else max(0, self._looks_soon - 1)
        return has_changed

    def close(self) -> None:
        """Close the source."""
        try:
            self._host.call(self._plugin, _close, self._source)
        except PluginError as error:
            log.warning("pod_source_not_closed", plugin=error.plugin, reason=error.reason)

    def _kept(self, pods: Iterable[Pod]) -> Iterator[Pod]:
        """Yield *pods*. An unchanged pod is the object that the plan in force refers to."""
        known = {pod.uid: pod for pod in self.pods}
        for pod in pods:
            before = known.get(pod.uid)
            yield before if before is not None and before == pod else pod

    def _asked(self) -> Iterable[Pod]:
        """Read the pods, the descriptor and the staleness. Runs on the plugin's thread."""
        pods = self._source.pods()
        fileno = getattr(self._source, "fileno", None)
        self._descriptor = int(fileno()) if fileno is not None else -1
        stale = getattr(self._source, "stale", None)
        staleness = stale() if stale is not None else None
        self._again_in_s = self._due_in_s()
        self._staleness = None if staleness is None else plain_record(staleness, Staleness)
        return pods

    def _pass_on(self, news: ExecutionNews) -> None:
        executed = getattr(self._source, "executed", None)
        if executed is not None:
            executed(news)
            self._again_in_s = self._due_in_s()

    def _due_in_s(self) -> float:
        again_in_s = getattr(self._source, "again_in_s", None)
        return float(again_in_s()) if again_in_s is not None else math.inf

    def _try_again_later(self) -> None:
        """Revive a source that the host set aside. A pause of the machine looks like a hang."""
        now = self._clock()
        if self._retry_at is None:
            self._retry_at = now + self._pause_s
        elif now >= self._retry_at:
            self._host.revive(self._plugin)
            self._retry_at = None
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _note_answer(self, staleness: Staleness | None) -> None:
        now = self._clock()
        if staleness is None:
            self.defect, self._answered_at = "", now
            return
        self._answered_at = now - staleness.age_s
        reason = shortened(staleness.reason)
        if not self.defect:
            log.warning("pods_are_stale", reason=reason)
        self.defect = f"pods are {staleness.age_s:.0f} s old: {reason}"

    def _note_failure(self, error: MachineError | PluginError) -> None:
        reason = shortened(str(error))
        if not self.defect:
            log.warning("pods_not_read", reason=reason, pods_kept=len(self.pods))
        self.defect = f"pods are {self.age_s:.0f} s old: {reason}"


def _close(source: OpenPodSource) -> None:
    source.close()


def open_pod_source(host: PluginHost, wanted: str, context: PodSourceContext) -> PodWatch:
    """Open the source named *wanted*. Raise InputError with the known names."""
    chosen = chosen_pod_source(host, wanted)
    source: OpenPodSource = host.call(
        chosen.plugin, chosen.record.open, context, allows=(InputError, MachineError)
    )
    return PodWatch(host, chosen.plugin, source)


def chosen_pod_source(host: PluginHost, wanted: str) -> Contribution[PodSource]:
    """Return the source named *wanted*. Raise InputError with the known names."""
    sources: dict[str, Contribution[PodSource]] = {
        contribution.record.name: contribution
        for contribution in host.gather("temper_pod_sources", PodSource)
    }
    chosen = sources.get(wanted)
    if chosen is None:
        names = ", ".join(sorted(sources))
        lost = [f"; plugin {s.name}: {s.failure}" for s in host.states() if s.failure]
        others = f"; there are: {names}{''.join(lost)}{did_you_mean(wanted, sources)}"
        problem = f"no pod source is named {wanted!r}{others}"
        raise InputError(f"[pods] source: {problem}")
    return chosen
