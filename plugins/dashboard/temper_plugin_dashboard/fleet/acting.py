"""Actions on nodes, which their agents carry out for holders of one of their tokens.

The server has no such token. It passes the one of the request on, and keeps it for that time only.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import structlog
from attrs import frozen
from starlette.requests import Request

from temper_core import InputError, MachineError
from temper_kube.agents import Agent, Roster, roster
from temper_kube.api_server import ApiServer
from temper_plugin_dashboard.fleet.actions import Action, outcome_of
from temper_plugin_dashboard.fleet.asking import AgentDoor, AgentRefusalError
from temper_plugin_dashboard.fleet.guarding import Guard
from temper_plugin_dashboard.fleet.measures import DONE, Cause
from temper_serving.bodies import BodyBudget
from temper_serving.clients import address_of
from temper_serving.turns import BusyError

AT_ONCE = 64
OF_NODE = 2
WAITS_S = 10.0
"""How long a request waits for its turn at a node. After that no client waits for its answer."""
LARGEST_BODY = 32 * 1024
BEARER = "Bearer "
UNKNOWN = "the cluster has no such node"
LATE = f"other actions on this node did not end within {WAITS_S:.0f} s. It was not asked"
UNCONFIRMED = "its answer does not confirm the action. Look at the node itself"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Answer:
    """The outcome of an action on a node. ``done`` is empty after a failure, else ``error`` is."""

    node: str
    done: str = ""
    error: str = ""

    def document(self) -> dict[str, str]:
        """Return it as JSON."""
        return {"node": self.node, "done": self.done, "error": self.error}


class Acting:
    """Asks the agents in *namespace* by *door*, ``AT_ONCE`` at a time.

    It lists them anew for each request. The address of an agent that has ended may belong to any
    other pod, which would receive the token. Agents may hang, and tokens may be made up: a session
    has one request at a time, and a node ``OF_NODE`` threads, so that neither keeps others from
    acting. It calls *counted* with ``DONE`` or a ``Cause`` for each agent that it asks.
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
        self._acting: set[str] = set()
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(OF_NODE)
        )

    def close(self) -> None:
        """Begin no further action. Those under way are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def carry_out(
        self, request: Request, read: Callable[[object], Action]
    ) -> list[dict[str, str]]:
        """Do what *read* finds in the body, log it, and return the answer of each node.

        Raises InputError for a request without a token, and for one that does not fit. Raises
        MachineError if the API server does not list the agents. Then no agent is asked.
        """
        action = read(await self._guard.document(request, self._bodies))
        token, session = _token_of(request), self._guard.session(request)
        if session in self._acting:
            raise BusyError("another action of this session is under way")
        self._acting.add(session)
        loop = asyncio.get_running_loop()
        try:
            found = _Found.of(await loop.run_in_executor(self._pool, self._listed))
            asked = (self._asked(found, node, action, token) for node in action.nodes)
            answers = await asyncio.gather(*asked)
        finally:
            self._acting.discard(session)
        _log(action, answers, address_of(request))
        return [answer.document() for answer in answers]

    async def _asked(self, found: "_Found", node: str, action: Action, token: str) -> Answer:
        agent = found.agents.get(node)
        if agent is None:
            return Answer(node, error=found.away.get(node, UNKNOWN))
        turns = self._turns[node]
        try:
            async with asyncio.timeout(WAITS_S):
                await turns.acquire()
        except TimeoutError:
            self._counted(Cause.NO_ANSWER)
            return Answer(node, error=LATE)
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, self._ask, agent, action, token)
        finally:
            turns.release()

    def _listed(self) -> Roster:
        with ApiServer(self._door.access) as api:
            return roster(api, self._namespace)

    def _ask(self, agent: Agent, action: Action, token: str) -> Answer:
        node = agent.node
        try:
            content = self._door.act(agent, action.method, action.path, action.body, token)
        except AgentRefusalError as error:
            self._counted(Cause.REFUSED)
            return Answer(node, error=str(error))
        except MachineError as error:
            self._counted(Cause.NO_ANSWER)
            return Answer(node, error=str(error))
        done = outcome_of(action, content.body)
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


def _log(action: Action, answers: Iterable[Answer], address: str) -> None:
    """Write a line for each outcome, with its nodes. Of names that are no node's, the number."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for answer in answers:
        nodes[answer.done or answer.error].append(answer.node)
    if unknown := nodes.get(UNKNOWN):
        nodes[UNKNOWN] = [f"{len(unknown)} others"]
    for outcome, names in nodes.items():
        log.info(
            action.event, node=", ".join(names), **action.facts, address=address, outcome=outcome
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
