"""Actions on nodes, which their agents carry out for holders of one of their tokens.

The server has no such token. It passes the one of the request on, and keeps it for that time only.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import structlog
from attrs import frozen
from starlette.requests import Request

from temper_core import InputError, MachineError
from temper_kube.agents import Agent, Roster, roster
from temper_kube.api_server import ApiServer
from temper_plugin_dashboard.fleet.asking import AgentDoor, AgentRefusalError
from temper_plugin_dashboard.fleet.deeds import Deed, outcome_of
from temper_plugin_dashboard.fleet.guarding import Guard
from temper_plugin_dashboard.fleet.measures import DONE, Cause
from temper_serving.answers import address_of
from temper_serving.bodies import BodyBudget

AT_ONCE = 32
LARGEST_BODY = 32 * 1024
BEARER = "Bearer "
UNCONFIRMED = "its answer does not confirm the action. Look at the node itself"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Answer:
    """What became of a deed on one node. ``done`` is empty after a failure, ``error`` otherwise."""

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
        """Begin no further action. Those under way are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def carry_out(
        self, request: Request, read: Callable[[object], Deed]
    ) -> list[dict[str, str]]:
        """Do what *read* finds in the body, log it, and return the answer of each node.

        Raises InputError for a request without a token, and for one that does not fit. Raises
        MachineError if the API server does not list the agents. Then no agent is asked.
        """
        deed = read(await self._guard.document(request, self._bodies))
        token = _token_of(request)
        loop = asyncio.get_running_loop()
        found = _Found.of(await loop.run_in_executor(self._pool, self._listed))
        asked = [
            loop.run_in_executor(self._pool, self._ask, found, node, deed, token)
            for node in deed.nodes
        ]
        answers = await asyncio.gather(*asked)
        for answer in answers:
            log.info(
                deed.event,
                node=answer.node,
                **deed.facts,
                address=address_of(request),
                outcome=answer.done or answer.error,
            )
        return [answer.document() for answer in answers]

    def _listed(self) -> Roster:
        with ApiServer(self._door.access) as api:
            return roster(api, self._namespace)

    def _ask(self, found: "_Found", node: str, deed: Deed, token: str) -> Answer:
        agent = found.agents.get(node)
        if agent is None:
            return Answer(node, error=found.away.get(node, "the cluster has no such node"))
        try:
            content = self._door.act(agent, deed.method, deed.path, deed.body, token)
        except AgentRefusalError as error:
            self._counted(Cause.REFUSED)
            return Answer(node, error=str(error))
        except MachineError as error:
            self._counted(Cause.NO_ANSWER)
            return Answer(node, error=str(error))
        done = outcome_of(deed, content.body)
        self._counted(DONE if done else Cause.REFUSED)
        return Answer(node, done) if done else Answer(node, error=UNCONFIRMED)


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


def _token_of(request: Request) -> str:
    """Return the agents' token of a request. Raises InputError if there is none to pass on."""
    given = request.headers.get("authorization", "")
    token = given.removeprefix(BEARER).strip()
    if not given.startswith(BEARER) or not token or not (token.isascii() and token.isprintable()):
        raise InputError(
            "acting needs the header Authorization: Bearer, with a token of the agents"
        )
    return token
