"""Asks the node's agent for observations and wake-ups, beside the sampling of threads."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from temper_core import (
    Party,
    Section,
    TemperError,
    WakeWindow,
    ask_agent,
    ask_observation,
    read_wake_window,
)
from temper_core.observed import count, pressure_of, table, text
from temper_plugin_trainer.thread_tables import LONGEST_COMM
from temper_plugin_trainer.training.bundles import (
    LONGEST_REASON,
    MOST_EDGES,
    AgentLook,
    BundleAgent,
    BundleEdge,
    BundleWakes,
)

ASK_EVERY_S = 1.0
END_WITHIN_S = 5.0
"""Seconds for which the end of an observation waits for an answer of the agent."""
MOST_WINDOWS = 64
WAKES_VERSION = 1

Edge = tuple[Party, Party]


class AgentWatch:
    """Asks an agent in a thread of its own, since an answer may take longer than a sample.

    It asks for ``/observe`` at the start and at the end, and for windows of wake-ups for
    *seconds*. *settings* have the agent's addresses. Without an answer it gives up.
    """

    def __init__(self, settings: Any, seconds: float) -> None:  # noqa: ANN401 - the agent's
        self._settings = settings
        self._seconds = seconds
        self._reason = ""
        self._wakes_reason = ""
        self._looks: list[AgentLook] = []
        self._windows: dict[float, WakeWindow] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="agent-watch", daemon=True)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def finish(self, is_inside: Callable[[Party], bool]) -> BundleAgent:
        """End, and return all answers with the wake-ups from and to threads *is_inside* accepts."""
        self._is_over.set()
        self._thread.join(END_WITHIN_S)
        reason = self._reason
        if self._thread.is_alive():
            reason = reason or f"the agent did not answer within {END_WITHIN_S:g} s"
        wakes = bundle_wakes([*self._windows.values()], is_inside, self._wakes_reason or reason)
        return BundleAgent(reason[:LONGEST_REASON], tuple(self._looks), wakes)

    def _watch(self) -> None:
        try:
            self._look()
        except TemperError as error:
            self._reason = str(error)
            return
        try:
            self._watch_wakes()
        except TemperError as error:
            self._wakes_reason = str(error)[:LONGEST_REASON]
        self._is_over.wait()
        try:
            self._look()
        except TemperError as error:
            self._reason = str(error)

    def _look(self) -> None:
        document = ask_observation(self._settings, 1)
        self._looks.append(agent_look(document))

    def _watch_wakes(self) -> None:
        """Collect windows until the end. Raise as ``ask_agent``."""
        body = {"seconds": min(3_600.0, max(1.0, self._seconds))}
        first = ask_agent("/wakes", method="PUT", body=body, settings=self._settings)
        known = table(first, "window").get("at") if isinstance(first, Mapping) else None
        while not self._is_over.wait(ASK_EVERY_S):
            answer = ask_agent("/wakes", settings=self._settings)
            if not isinstance(answer, Mapping):
                self._wakes_reason = "the agent's answer to /wakes is no window"
                return
            self._wakes_reason = text(answer, "reason")[:LONGEST_REASON]
            content = table(answer, "window")
            window = read_wake_window(Section(WAKES_VERSION, content)) if content else None
            if window and content.get("at") != known and len(self._windows) < MOST_WINDOWS:
                self._windows[window.at] = window


def agent_look(document: Mapping[str, Any]) -> AgentLook:
    """Return what a bundle keeps of an answer of ``/observe``."""
    pressure = number_in(pressure_of(document), 0.0, 1.0)
    return AgentLook(
        at=text(document, "at")[:64],
        mode=text(document, "mode")[:64],
        generation=count(document, "generation") or 0,
        engine=text(document, "engine")[:128],
        cpu_pressure=-1.0 if pressure is None else pressure,
    )


def number_in(value: float | None, least: float, most: float) -> float | None:
    """Return *value* if it lies in the range, None otherwise."""
    return value if value is not None and least <= value <= most else None


def bundle_wakes(
    windows: list[WakeWindow], is_inside: Callable[[Party], bool], reason: str
) -> BundleWakes:
    """Add up the edges of *windows* that begin or end inside of the program, most frequent first.

    *reason* is why there are no windows, if it is known.
    """
    if not windows:
        why = reason or "no window came in the time of the observation; give it more --seconds"
        return BundleWakes(why[:LONGEST_REASON])
    sums = Counter[Edge]()
    for window in windows:
        for edge in window.edges:
            if is_inside(edge.waker) or is_inside(edge.wakee):
                sums[edge.waker, edge.wakee] += edge.wakes
    return BundleWakes(
        windows=len(windows),
        watched_s=round(sum(window.length_s for window in windows), 6),
        lost=sum(window.lost for window in windows),
        edges=tuple(
            BundleEdge(
                waker=waker.tid,
                wakee=wakee.tid,
                waker_comm=waker.comm[:LONGEST_COMM],
                wakee_comm=wakee.comm[:LONGEST_COMM],
                waker_inside=is_inside(waker),
                wakee_inside=is_inside(wakee),
                wakes=wakes,
            )
            for (waker, wakee), wakes in sums.most_common(MOST_EDGES)
        ),
    )


def inside(tids: AbstractSet[int]) -> Callable[[Party], bool]:
    """Return whether a party is one of the threads *tids*."""
    return lambda party: party.tid in tids
