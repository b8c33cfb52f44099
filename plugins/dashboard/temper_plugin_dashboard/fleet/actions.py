"""Actions of agents that the page of a cluster may request, read from its request bodies."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from attrs import frozen

from temper_core import InputError, fit_body, parse_tenant_json, setting
from temper_core.observed import Row, number, rows, table, text

REQUESTER = "dashboard-user"
"""The requester of the page of a node too, so that each page withdraws requests of the other."""
MOST_NODES = 64
"""Nodes of one request. With all agents silent it takes two times the limit of an answer."""
LONGEST_NAME, LONGEST_REASON, LONGEST_POD, LONGEST_OUTCOME = 253, 500, 600, 1000
SHORTEST_TRACE_S, LONGEST_TRACE_S = 0.1, 30.0
SAFE_MODE_EXAMPLE = '{"nodes": ["worker-1"], "requested": true, "reason": "latency of the shop"}'
TRACE_EXAMPLE = '{"nodes": ["worker-1"], "seconds": 5, "pod": "shop/db-0"}'
RELOAD_EXAMPLE = '{"nodes": ["worker-1"]}'


@frozen
class Action:
    """One request that each agent of *nodes* gets.

    Attributes:
        outcome: Returns the words for an agent's answer, empty if it does not confirm the action.
        event: The name of the line in the server's log, which has the *facts*.

    """

    nodes: tuple[str, ...]
    method: Literal["PUT", "POST"]
    path: str
    body: Mapping[str, Any] | None
    outcome: Callable[[Row], str]
    event: str
    facts: Mapping[str, Any]


@frozen
class _SafeMode:
    nodes: tuple[str, ...] = setting((), "The names of nodes.")
    requested: bool | None = setting(None, "Whether safe mode is requested, or withdrawn.")
    reason: str = setting("", "Why safe mode is requested.")


@frozen
class _Trace:
    nodes: tuple[str, ...] = setting((), "The names of nodes.")
    seconds: float = setting(5.0, "How long the scheduler's events are recorded.")
    pod: str = setting("", "The pod, as namespace/name. Empty for the whole node.")


@frozen
class _Reload:
    nodes: tuple[str, ...] = setting((), "The names of nodes.")


def safe_mode(document: object) -> Action:
    """Return the change of safe mode in a body. Raises InputError if it does not fit."""
    wish = fit_body(document, _SafeMode, source="safe-mode request", example=SAFE_MODE_EXAMPLE)
    _require_nodes(wish.nodes)
    if wish.requested is None:
        raise InputError("requested: must be true or false")
    if len(wish.reason) > LONGEST_REASON or not wish.reason.isprintable():
        raise InputError(f"reason: must be one line of at most {LONGEST_REASON} characters")
    if wish.requested and not wish.reason.strip():
        raise InputError("reason: must say why safe mode is requested")
    body: dict[str, Any] = {"requested": wish.requested, "requester": REQUESTER}
    if wish.requested:
        body["reason"] = wish.reason
    facts = {"requested": wish.requested, "reason": wish.reason}
    outcome = _requested if wish.requested else _withdrawn
    return Action(wish.nodes, "PUT", "/safe-mode", body, outcome, "safe_mode_asked", facts)


def trace(document: object) -> Action:
    """Return the capture in a body. Raises InputError if it does not fit."""
    wish = fit_body(document, _Trace, source="trace request", example=TRACE_EXAMPLE)
    _require_nodes(wish.nodes)
    if not SHORTEST_TRACE_S <= wish.seconds <= LONGEST_TRACE_S:
        raise InputError(f"seconds: must be {SHORTEST_TRACE_S} to {LONGEST_TRACE_S:g}")
    if len(wish.pod) > LONGEST_POD or not wish.pod.isprintable():
        raise InputError(f"pod: must be one line of at most {LONGEST_POD} characters")
    facts = {"seconds": wish.seconds, "pod": wish.pod}
    body = {"seconds": wish.seconds, **({"pod": wish.pod} if wish.pod else {})}
    return Action(wish.nodes, "POST", "/trace", body, _captured, "trace_asked", facts)


def profile_reload(document: object) -> Action:
    """Return the reload of profiles in a body. Raises InputError if it does not fit."""
    wish = fit_body(document, _Reload, source="reload request", example=RELOAD_EXAMPLE)
    _require_nodes(wish.nodes)
    event = "profile_reload_asked"
    return Action(wish.nodes, "POST", "/profiles/reload", None, _reloaded, event, {})


def outcome_of(action: Action, content: bytes) -> str:
    """Return in words what an agent answered, empty if that does not confirm the action.

    It is bounded, whatever the agent sends.
    """
    try:
        answer = table({"it": parse_tenant_json(content)}, "it")
    except ValueError:
        answer = {}
    return " ".join(action.outcome(answer).split())[:LONGEST_OUTCOME]


def _require_nodes(nodes: tuple[str, ...]) -> None:
    if not 1 <= len(nodes) <= MOST_NODES:
        raise InputError(f"nodes: must be 1 to {MOST_NODES} names, not {len(nodes)}")
    if len(set(nodes)) < len(nodes):
        raise InputError("nodes: each may be named once")
    if any(len(name) > LONGEST_NAME for name in nodes):
        raise InputError(f"nodes: a name has at most {LONGEST_NAME} characters")


def _requested(answer: Row) -> str:
    if REQUESTER not in table(answer, "requests"):
        return ""
    unkept = text(answer, "unkept")[:LONGEST_REASON]
    lost = f", but a restart of the agent forgets it: {unkept}" if unkept else ""
    return f"safe mode is requested{lost}"


def _withdrawn(answer: Row) -> str:
    if "requests" not in answer:
        return ""
    return "withdrawn" if answer.get("released") is True else "no request of a page stood there"


def _captured(answer: Row) -> str:
    return f"the capture {text(answer, 'id')} has begun" if text(answer, "id") else ""


def _reloaded(answer: Row) -> str:
    profiles = number(answer, "profiles")
    if profiles is None:
        return ""
    changed = "some have changed" if answer.get("changed") is True else "none has changed"
    loaded = f"{profiles:.0f} profiles are loaded, {changed}"
    failures = [f"{text(row, 'source')}: {text(row, 'reason')}" for row in rows(answer, "failures")]
    return f"{loaded}; not loaded: {'; '.join(failures)}" if failures else loaded
