"""The agent's own endpoints, as the same records that plugins contribute."""

import math
from typing import Any

import attrs
from attrs import frozen

from temper_core import __version__
from temper_core.errors import InputError, MachineError
from temper_core.events.endpoints import EventEndpoints
from temper_core.metrics.scraper import Scraper
from temper_core.records.endpoints import Answer, Endpoint, Request
from temper_core.records.snapshots import Mode
from temper_core.safe_mode import request_document
from temper_core.safe_mode.request_document import parse_safe_mode_request
from temper_core.server.answers import (
    NOT_FOUND,
    OK,
    UNAVAILABLE,
    error_answer,
    json_answer,
    message_of,
)
from temper_core.server.checks_document import checks_document
from temper_core.server.invariants_document import invariants_document
from temper_core.server.reload_endpoint import reload_endpoint
from temper_core.server.trial_endpoints import TrialEndpoints
from temper_core.server.view import AgentView

MOST_THREADS = 5_000
STALE_PODS_S = 60.0
MOST_REQUESTERS_OVER_TCP = 64
"""Requesters of safe mode, as one more over TCP finds them. Each has up to 600 bytes in an answer,
in the state file and in the events."""
MOST_REQUESTERS = 128
"""The same over the local socket."""
READY_MODES = (Mode.ENFORCING, Mode.RELOADING, Mode.OBSERVE_ONLY)


@frozen
class CoreEndpoints:
    """The core's endpoints, which answer from *view*."""

    view: AgentView
    scraper: Scraper

    def table(self) -> tuple[Endpoint, ...]:
        """Return every endpoint except those that describe the table."""
        return (
            *self._observing(),
            *self._probing(),
            *self._checking(),
            *self._deciding(),
            *TrialEndpoints(self.view.trials()).table(),
            reload_endpoint(self.view.reload_profiles),
            *EventEndpoints(self.view.events).table(),
        )

    def _observing(self) -> tuple[Endpoint, ...]:
        return (
            Endpoint(
                "get-metrics",
                "GET",
                "/metrics",
                "Metrics for Prometheus.",
                self._metrics,
                media_type="text/plain",
            ),
            Endpoint(
                "get-observation",
                "GET",
                "/observe",
                "The last observation: layers, pods, busiest threads, pressure, violations.",
                self._observe,
                parameters={"top": f"Busiest threads to list, 1 to {MOST_THREADS}."},
            ),
            Endpoint(
                "get-recording",
                "GET",
                "/recording",
                "Everything of the last look, settings and pods included, for a recording.",
                self._recording,
                acts=True,  # it changes nothing, but its content needs the right to act
            ),
            Endpoint(
                "list-plugins", "GET", "/plugins", "Every plugin and its state.", self._plugins
            ),
        )

    def _probing(self) -> tuple[Endpoint, ...]:
        return (
            Endpoint(
                "get-health", "GET", "/healthz", "200 while the agent's loop runs.", self._health
            ),
            Endpoint(
                "get-readiness",
                "GET",
                "/readyz",
                "200 while the agent does all it can do on this node.",
                self._readiness,
            ),
        )

    def _checking(self) -> tuple[Endpoint, ...]:
        return (
            Endpoint(
                "get-checks",
                "GET",
                "/checks",
                "The plugins' checks, for 'temper doctor'.",
                lambda _: checks_document(self.view.checks()),
            ),
            Endpoint(
                "get-invariants",
                "GET",
                "/invariants",
                "What the linter checks, and why it matters.",
                lambda _: invariants_document(self.view.invariants()),
            ),
        )

    def _deciding(self) -> tuple[Endpoint, ...]:
        return (
            Endpoint(
                "get-layered-config",
                "GET",
                "/config",
                "The configuration in force, exactly as the engine received it.",
                self._config,
            ),
            Endpoint(
                "get-plan",
                "GET",
                "/plan",
                "The plan in force, and whether the next can be swapped for it.",
                self._plan,
            ),
            Endpoint(
                "explain-placement",
                "GET",
                "/explain",
                "Why a pod, or every pod, is where it is.",
                self._explain,
                parameters={"pod": "The pod, as namespace/name; absent explains all."},
            ),
            Endpoint(
                "get-safe-mode", "GET", "/safe-mode", "The safe-mode requests.", self._safe_mode
            ),
            Endpoint(
                "set-safe-mode",
                "PUT",
                "/safe-mode",
                "Request the stock scheduler, or withdraw a request.",
                self._set_safe_mode,
                acts=True,
                body_schema=request_document.SCHEMA,
            ),
        )

    def _metrics(self, request: Request) -> Answer:
        text, media_type = self.scraper.scrape(request.headers.get("accept", ""))
        return Answer(text, media_type)

    def _observe(self, request: Request) -> Any:  # noqa: ANN401 - JSON
        document = self.view.observe_document(_top(request.query.get("top")))
        if document is None:
            return error_answer(UNAVAILABLE, "nothing was observed yet; ask again in a moment")
        return document

    def _recording(self, _: Request) -> Any:  # noqa: ANN401 - JSON
        document = self.view.recording_document()
        if document is None:
            return error_answer(UNAVAILABLE, "nothing was observed yet; ask again in a moment")
        return document

    def _health(self, _: Request) -> Answer:
        if not self.view.is_alive():
            return error_answer(UNAVAILABLE, "the agent's loop stands still")
        return json_answer({"alive": True, "version": __version__})

    def _readiness(self, _: Request) -> Answer:
        status = self.view.status()
        if not self.view.is_alive():
            return error_answer(UNAVAILABLE, "the agent's loop stands still")
        if self.view.snapshot() is None:
            return error_answer(UNAVAILABLE, "the agent has not yet looked at the node")
        failed = sorted(self.view.failures().items())
        if failed:
            return error_answer(
                UNAVAILABLE, "; ".join(f"{part} fails: {error[:200]}" for part, error in failed)
            )
        stale = _staleness(self.view.pods_age_s())
        if stale:
            return error_answer(UNAVAILABLE, stale)
        ready = status.mode in READY_MODES
        return json_answer({"ready": ready, **_state(self.view)}, OK if ready else UNAVAILABLE)

    def _plugins(self, _: Request) -> Any:  # noqa: ANN401 - JSON
        return {"plugins": [attrs.asdict(state) for state in self.view.plugins()]}

    def _config(self, _: Request) -> Answer:
        generation = self.view.generation()
        if generation is None:
            return _none_in_force(self.view, "configuration")
        return Answer(generation.config.encode())

    def _plan(self, _: Request) -> Any:  # noqa: ANN401 - JSON
        document = self.view.plan_document()
        return _none_in_force(self.view, "plan") if document is None else document

    def _explain(self, request: Request) -> Any:  # noqa: ANN401 - JSON
        try:
            return self.view.explain(request.query.get("pod"))
        except InputError as error:
            return error_answer(NOT_FOUND, message_of(error))

    def _safe_mode(self, _: Request) -> Any:  # noqa: ANN401 - JSON
        requests = {name: dict(stands) for name, stands in self.view.safe_mode_requests().items()}
        unkept = self.view.unkept_requests()
        return {**_state(self.view), "requests": requests, "unkept": unkept}

    def _set_safe_mode(self, request: Request) -> Any:  # noqa: ANN401 - JSON
        change = parse_safe_mode_request(request.json(), request.requester.way)
        if change.requested:
            self._require_room(change.requester, request.requester.way)
            self.view.request_safe_mode(change.requester, change.reason)
            return self._safe_mode(request)
        released = self.view.release_safe_mode(change.requester)
        return {**self._safe_mode(request), "released": released}

    def _require_room(self, requester: str, way: str) -> None:
        """Raise MachineError if too many others have requested safe mode already."""
        requests = self.view.safe_mode_requests()
        most = MOST_REQUESTERS if way == "socket" else MOST_REQUESTERS_OVER_TCP
        if requester not in requests and len(requests) >= most:
            raise MachineError(
                f"{len(requests)} requesters have requested safe mode already, and it is in force "
                "until all of them withdraw; nothing was added"
            )


def _none_in_force(view: AgentView, what: str) -> Answer:
    status = view.status()
    why = " ".join(filter(None, [status.mode, status.reason, status.detail]))
    return error_answer(NOT_FOUND, f"no {what} is in force ({why})")


def _state(view: AgentView) -> dict[str, Any]:
    status = view.status()
    return {"mode": status.mode, "reason": status.reason, "detail": status.detail}


def _staleness(age_s: float) -> str:
    """Return why the pods are too old for decisions, or an empty string if they are recent."""
    if age_s <= STALE_PODS_S:
        return ""
    if not math.isfinite(age_s):
        return "the pod source has not answered yet"
    return f"the pods are {age_s:.0f} s old: their source does not answer; /observe has defects"


def _top(text: str | None) -> int | None:
    if text is None:
        return None
    is_short = len(text) <= len(str(MOST_THREADS))
    if not (is_short and text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_THREADS):
        raise InputError(f"top: must be a whole number from 1 to {MOST_THREADS}, not {text[:40]!r}")
    return int(text)
