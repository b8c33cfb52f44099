"""A node's own page behind the fleet server: its files are the server's, its data the agent's.

The server never passes on a page or a script of an agent. A script of an agent that was taken over
could act in the session of the reader.
"""

import json
from collections.abc import AsyncIterator, Iterable
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from temper_core import MachineError, ServerSentEvent
from temper_plugin_dashboard.fleet.asking import AgentRefusalError
from temper_plugin_dashboard.fleet.forwarding import Forwarding
from temper_plugin_dashboard.fleet.guarding import Guard, refusal
from temper_plugin_dashboard.fleet.rounds import Rounds
from temper_plugin_dashboard.fleet.streaming import Streams
from temper_plugin_dashboard.fleet.survey import NodeState, State, Survey
from temper_serving.answers import JSON
from temper_serving.turns import BusyError
from temper_serving.unsent import Unsent

FORWARDED = frozenset(
    {
        "checks",
        "config",
        "dashboard/history",
        "dashboard/profiles",
        "events",
        "explain",
        "index",
        "invariants",
        "observe",
        "openapi.json",
        "plan",
        "plugins",
        "rightsize",
        "safe-mode",
        "traces",
        "training",
        "trials",
        "violations",
        "wakes",
    }
)
"""The paths of an agent that its page reads without a token."""
LONGEST_QUERY = 2000
ERRORS = range(400, 600)


class NodePages:
    """The data of the pages below ``/node/NAME/``, for reading only."""

    def __init__(
        self,
        survey: Survey,
        rounds: Rounds,
        forwarding: Forwarding,
        guard: Guard,
        streams: Streams,
        *,
        pod_parts: Iterable[str] = (),
    ) -> None:
        """*pod_parts* are those that ``/fleet/pod/PART`` answers of a pod."""
        self._survey = survey
        self._rounds = rounds
        self._guard = guard
        self._streams = streams
        self._forwarding = forwarding
        self._unsent = Unsent()
        self._pod_parts = pod_parts

    def close(self) -> None:
        """Give up the threads that ask agents. Answers under way are not waited for."""
        self._forwarding.close()

    def routes(self) -> list[Route]:
        """Return the routes."""
        guarded = self._guard.guarded
        return [
            Route("/node/{node}/dashboard/settings", guarded(self._settings)),
            Route("/node/{node}/dashboard/snapshots", guarded(self._follow)),
            Route("/node/{node}/{path:path}", guarded(self._forward)),
        ]

    async def _settings(self, request: Request) -> Response:
        document = {
            "actions": False,
            "fleet": "../../",
            "node": request.path_params["node"],
            "pod_details": list(self._pod_parts),
        }
        return Response(json.dumps(document), media_type=JSON)

    async def _forward(self, request: Request) -> Response:
        """Pass a request on to the node's agent."""
        self._rounds.look()
        node, path = request.path_params["node"], request.path_params["path"]
        query = request.url.query
        if path not in FORWARDED or len(query) > LONGEST_QUERY:
            return refusal(HTTPStatus.NOT_FOUND, f"/{path} of an agent cannot be read here")
        await self._rounds.first()
        known = self._survey.nodes.get(node)
        if known is None:
            return refusal(HTTPStatus.NOT_FOUND, f"the cluster has no node {node[:253]}")
        if known.agent is None:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"{node}: {known.why}")
        try:
            answer = await self._forwarding.ask(
                known.agent, f"/{path}?{query}" if query else f"/{path}"
            )
        except AgentRefusalError as error:
            return refusal(_of_error(error.status), error.reason)
        except MachineError as error:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"{node}: {error}")
        return self._held(answer.body, _plain(answer.headers.get_content_type()))

    def _held(self, body: bytes, media_type: str) -> Response:
        try:
            return self._unsent.response(body, media_type)
        except BusyError as error:
            again = {"retry-after": "1"}
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers=again)

    async def _follow(self, request: Request) -> Response:
        """Tell the page of each new observation of its node, and when its agent is away."""
        node = request.path_params["node"]

        async def events() -> AsyncIterator[bytes]:
            sent: object = None
            async for is_new in self._rounds.each():
                state = self._survey.nodes.get(node)
                news = _news(state) if is_new else sent
                yield b":\n\n" if news == sent else _event(state).encode()
                sent = news

        return self._streams.answer(request, events())


def _of_error(status: int) -> int:
    """Return *status* if it is one of an error.

    After any other, as 304, a browser may take the answer's body for the next answer.
    """
    return status if status in ERRORS else HTTPStatus.BAD_GATEWAY


def _plain(media_type: str) -> str:
    """Return a media type that a browser does not run, whatever the agent says."""
    return JSON if media_type == JSON else "text/plain"


def _news(state: NodeState | None) -> object:
    return state and (state.answered_at, state.state, state.why)


def _event(state: NodeState | None) -> ServerSentEvent:
    if state is None or state.state == State.AWAY:
        why = state.why if state else "the cluster has no such node any more"
        return ServerSentEvent(json.dumps({"why": why, "since": state and state.since}), "away")
    return ServerSentEvent(json.dumps({"at": state.answered_at}), "snapshot")
