"""Changes of safe mode of nodes, which their agents make for holders of one of their tokens.

The server has no such token. It passes the one of the request on, and keeps it for that time only.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
from attrs import frozen
from starlette.requests import Request

from temper_core import InputError, MachineError, fit_body, parse_tenant_json, setting
from temper_core.observed import table
from temper_kube.agents import Agent, Roster, roster
from temper_kube.api_server import ApiServer
from temper_plugin_dashboard.fleet.asking import AgentDoor, AgentRefusalError
from temper_plugin_dashboard.fleet.guarding import Guard
from temper_plugin_dashboard.fleet.measures import DONE, Cause
from temper_serving.answers import address_of
from temper_serving.bodies import BodyBudget

REQUESTER = "dashboard-user"
"""The requester of the page of a node too, so that each page withdraws requests of the other."""
AT_ONCE = 32
MOST_NODES = 64
"""Nodes of one request. With all agents silent it takes two times the limit of an answer."""
LARGEST_BODY = 32 * 1024
LONGEST_NAME, LONGEST_REASON = 253, 500
BEARER = "Bearer "
UNCONFIRMED = "its answer does not confirm the change. Look at the node itself"
EXAMPLE = '{"nodes": ["worker-1"], "requested": true, "reason": "latency of the shop"}'

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Wish:
    """What the body of a request asks for."""

    nodes: tuple[str, ...] = setting((), "The names of nodes.")
    requested: bool | None = setting(None, "Whether safe mode is requested, or withdrawn.")
    reason: str = setting("", "Why safe mode is requested.")


@frozen
class Answer:
    """What became of a wish on one node. ``done`` is empty after a failure, ``error`` otherwise."""

    node: str
    done: str = ""
    error: str = ""

    def document(self) -> dict[str, str]:
        """Return it as JSON."""
        return {"node": self.node, "done": self.done, "error": self.error}


class Acting:
    """Asks the agents in *namespace* by *door*, ``AT_ONCE`` at a time.

    It lists them anew for each request. The address of an agent that has ended may belong to any
    other pod, which would receive the token. It calls *counted* with ``DONE`` or a ``Cause`` for
    each agent that it asks.
    """

    def __init__(
        self, door: AgentDoor, namespace: str, guard: Guard, counted: Callable[[str], None]
    ) -> None:
        self._door = door
        self._namespace = namespace
        self._guard = guard
        self._counted = counted
        self._bodies = BodyBudget(LARGEST_BODY)
        self._pool = ThreadPoolExecutor(AT_ONCE, "acting")

    def close(self) -> None:
        """Begin no further change. Those under way are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def set_safe_mode(self, request: Request) -> list[dict[str, str]]:
        """Do what the body asks for, log it, and return the answer of each node.

        Raises InputError for a request without a token, and for one that does not fit. Raises
        MachineError if the API server does not list the agents. Then no agent is asked.
        """
        wish = _fitting(await self._guard.document(request, self._bodies))
        token = _token_of(request)
        loop = asyncio.get_running_loop()
        found = _Found.of(await loop.run_in_executor(self._pool, self._listed))
        asked = [
            loop.run_in_executor(self._pool, self._ask, found, node, wish, token)
            for node in wish.nodes
        ]
        answers = await asyncio.gather(*asked)
        for answer in answers:
            log.info(
                "safe_mode_asked",
                node=answer.node,
                requested=wish.requested,
                reason=wish.reason,
                address=address_of(request),
                outcome=answer.done or answer.error,
            )
        return [answer.document() for answer in answers]

    def _listed(self) -> Roster:
        with ApiServer(self._door.access) as api:
            return roster(api, self._namespace)

    def _ask(self, found: "_Found", node: str, wish: Wish, token: str) -> Answer:
        agent = found.agents.get(node)
        if agent is None:
            return Answer(node, error=found.away.get(node, "the cluster has no such node"))
        body: dict[str, Any] = {"requested": wish.requested, "requester": REQUESTER}
        if wish.requested:
            body["reason"] = wish.reason
        try:
            content = self._door.put(agent, "/safe-mode", body, token)
        except AgentRefusalError as error:
            self._counted(Cause.REFUSED)
            return Answer(node, error=str(error))
        except MachineError as error:
            self._counted(Cause.NO_ANSWER)
            return Answer(node, error=str(error))
        answer = _answer(node, content.body, is_requested=bool(wish.requested))
        self._counted(DONE if answer.done else Cause.REFUSED)
        return answer


@frozen
class _Found:
    """The agents of the cluster by node, and why the other nodes have none that can be asked."""

    agents: Mapping[str, Agent]
    away: Mapping[str, str]

    @classmethod
    def of(cls, found: Roster) -> "_Found":
        return cls(
            {agent.node: agent for agent in found.agents},
            {away.node: away.why for away in found.away},
        )


def _fitting(document: object) -> Wish:
    """Return the wish of a body. Raises InputError if it does not fit."""
    wish = fit_body(document, Wish, source="safe-mode request", example=EXAMPLE)
    if not 1 <= len(wish.nodes) <= MOST_NODES:
        raise InputError(f"nodes: must be 1 to {MOST_NODES} names, not {len(wish.nodes)}")
    if len(set(wish.nodes)) < len(wish.nodes):
        raise InputError("nodes: each may be named once")
    if any(len(name) > LONGEST_NAME for name in wish.nodes):
        raise InputError(f"nodes: a name has at most {LONGEST_NAME} characters")
    if wish.requested is None:
        raise InputError("requested: must be true or false")
    if len(wish.reason) > LONGEST_REASON or not wish.reason.isprintable():
        raise InputError(f"reason: must be one line of at most {LONGEST_REASON} characters")
    if wish.requested and not wish.reason.strip():
        raise InputError("reason: must say why safe mode is requested")
    return wish


def _token_of(request: Request) -> str:
    """Return the agents' token of a request. Raises InputError if there is none to pass on."""
    given = request.headers.get("authorization", "")
    token = given.removeprefix(BEARER).strip()
    if not given.startswith(BEARER) or not token or not (token.isascii() and token.isprintable()):
        raise InputError(
            "acting needs the header Authorization: Bearer, with a token of the agents"
        )
    return token


def _answer(node: str, body: bytes, *, is_requested: bool) -> Answer:
    """Return what the agent's answer says. One that does not show the request is a failure."""
    try:
        state = table({"it": parse_tenant_json(body)}, "it")
    except ValueError:
        state = {}
    if "requests" not in state:
        return Answer(node, error=UNCONFIRMED)
    if is_requested:
        stands = REQUESTER in table(state, "requests")
        return Answer(node, "safe mode is requested") if stands else Answer(node, "", UNCONFIRMED)
    done = "withdrawn" if state.get("released") is True else "no request of a page stood there"
    return Answer(node, done)
