"""The fleet server's HTTP application."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from temper_core import InputError, ServerSentEvent, TemperError, __version__
from temper_plugin_dashboard.fleet import actions
from temper_plugin_dashboard.fleet.acting import Acting
from temper_plugin_dashboard.fleet.asking import AgentDoor
from temper_plugin_dashboard.fleet.forwarding import Forwarding
from temper_plugin_dashboard.fleet.guarding import Guard, SafeHeaders, refusal
from temper_plugin_dashboard.fleet.history import History
from temper_plugin_dashboard.fleet.measures import Measured, Measures
from temper_plugin_dashboard.fleet.node_pages import NodePages
from temper_plugin_dashboard.fleet.pod_details import PodDetails
from temper_plugin_dashboard.fleet.pod_pages import PodPages
from temper_plugin_dashboard.fleet.pod_search import find_pods
from temper_plugin_dashboard.fleet.rounds import Rounds
from temper_plugin_dashboard.fleet.sessions import Sessions
from temper_plugin_dashboard.fleet.streaming import Streams
from temper_plugin_dashboard.fleet.survey import Survey
from temper_plugin_dashboard.page_files import ASSETS, PageFiles, media_type
from temper_serving.answers import JSON, Handler, refusing
from temper_serving.certificate_files import CertificateFiles
from temper_serving.observed import observed_routes

EVERY_S = 5.0
MOST_HOURS = 14 * 24
USUAL_HOURS = 6
MOST_QUERIES = 4
"""Nodes whose history is asked for at a time."""
MOST_PODS = 500
LONGEST_WORDS = 200
"""Characters of the words by which pods are found."""
FLEET, NODE, LOGIN = "fleet.html", "index.html", "login.html"
_REVALIDATED = {"cache-control": "no-cache"}
_WHOLE = re.compile(r"[0-9]{1,5}", re.ASCII)


class FleetServer:
    """The page of a cluster, and the pages of its nodes. Data needs a session, metrics do not.

    With a *door* that has actions it passes those on to agents.
    """

    def __init__(
        self,
        door: AgentDoor,
        sessions: Sessions,
        namespace: str,
        *,
        history: History | None = None,
        pod_parts: Iterable[str] = (),
        every_s: float = EVERY_S,
    ) -> None:
        self._survey = Survey(door, namespace)
        self._rounds = Rounds(self._survey, every_s)
        self._guard = Guard(sessions)
        self._streams = Streams(self._guard)
        self._measures = Measures(self._survey, lambda: self._streams.open)
        details = PodDetails(door.access, pod_parts)
        self._pod_pages = PodPages(details, self._guard)
        self._nodes = NodePages(
            self._survey,
            self._rounds,
            Forwarding(door, self._measures.count_failure),
            self._guard,
            self._streams,
            pod_parts=details.parts,
        )
        self._acting = Acting(door, namespace, self._guard, self._measures.count_action)
        self._has_actions = door.has_actions
        self._history = history
        self._queries = asyncio.Semaphore(MOST_QUERIES)
        self._files = PageFiles()
        self._name = door.access.name

    def application(self, certificate: CertificateFiles | None = None) -> Starlette:
        """Return the application, for a server with this *certificate*."""
        self._measures.tell_expiry(certificate)
        guarded = self._guard.guarded
        routes = [
            *observed_routes(lambda: "", self._measures.text, certificate),
            Route("/login", refusing(self._guard.enter), methods=["POST"]),
            Route("/logout", refusing(self._guard.leave), methods=["POST"]),
            Route("/", self._page(FLEET)),
            Route("/dashboard/files/{file:path}", self._file),
            Route("/node/{node}/dashboard/files/{file:path}", self._file),
            Route("/node/{node}", _with_slash),
            Route("/node/{node}/", self._page(NODE)),
            Route("/fleet/nodes", guarded(self._all_nodes)),
            Route("/fleet/pods", guarded(_telling(self._pods))),
            Route("/fleet/history", guarded(_telling(self._of_node))),
            Route("/fleet/rounds", guarded(self._follow)),
            *(self._acting_routes() if self._has_actions else []),
            self._pod_pages.route(),
            *self._nodes.routes(),
        ]
        middleware = [Middleware(Measured, measures=self._measures), Middleware(SafeHeaders)]
        return Starlette(routes=routes, lifespan=self._lifespan, middleware=middleware)

    def _acting_routes(self) -> Iterable[Route]:
        known = (
            ("PUT", "/fleet/safe-mode", actions.safe_mode),
            ("POST", "/fleet/traces", actions.trace),
            ("POST", "/fleet/profiles/reload", actions.profile_reload),
        )
        for method, path, read in known:
            carried_out = self._guard.guarded(refusing(_telling(self._carrying_out(read))))
            yield Route(path, carried_out, methods=[method])

    def _carrying_out(self, read: Callable[[object], actions.Action]) -> Handler:
        async def carried_out(request: Request) -> Response:
            return _answer({"nodes": await self._acting.carry_out(request, read)})

        return carried_out

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._rounds.start()
        try:
            yield
        finally:
            self._nodes.close()
            self._acting.close()
            await self._rounds.close()

    def _page(self, name: str) -> Handler:
        """Return the handler of a page, which is that of the login without a session.

        A page whose session has ended asks for the login by the query ``?login``.
        """

        async def page(request: Request) -> Response:
            is_entered = self._guard.may_be_open(request) and "login" not in request.query_params
            path = ASSETS / (name if is_entered else LOGIN)
            return FileResponse(path, media_type=media_type(path))

        return page

    async def _file(self, request: Request) -> Response:
        path = self._files.find(request.path_params["file"])
        if path is None:
            return refusal(HTTPStatus.NOT_FOUND, "there is no such file")
        return FileResponse(path, media_type=media_type(path), headers=_REVALIDATED)

    async def _all_nodes(self, _: Request) -> Response:
        await self._rounds.first()
        survey = self._survey
        return _answer(
            {
                "cluster": self._name,
                "version": __version__,
                "at": survey.taken_at,
                "problem": survey.problem,
                "notes": list(survey.notes),
                "has_history": self._history is not None,
                "actions": self._has_actions,
                "nodes": [survey.nodes[name].document() for name in sorted(survey.nodes)],
            }
        )

    async def _pods(self, request: Request) -> Response:
        await self._rounds.first()
        words = request.query_params.get("find", "")
        node = request.query_params.get("node", "")
        if len(words) > LONGEST_WORDS:
            raise InputError(f"find must have at most {LONGEST_WORDS} characters")
        nodes = self._survey.nodes.values()
        return _answer(await asyncio.to_thread(find_pods, nodes, words, node, MOST_PODS))

    async def _of_node(self, request: Request) -> Response:
        await self._rounds.first()
        node, hours = request.query_params.get("node", ""), _hours(request)
        if self._history is None:
            message = "no Prometheus is set: --prometheus, dashboard.prometheus of the chart"
            return refusal(HTTPStatus.NOT_FOUND, message)
        if node not in self._survey.nodes:
            return refusal(HTTPStatus.NOT_FOUND, f"the cluster has no node {node[:253]}")
        async with self._queries:
            return _answer(await asyncio.to_thread(self._history.of, node, hours))

    async def _follow(self, request: Request) -> Response:
        """Tell the page of each round."""

        async def events() -> AsyncIterator[bytes]:
            async for is_new in self._rounds.each():
                number = str(self._survey.rounds)
                yield ServerSentEvent(number, "round").encode() if is_new else b":\n\n"

        return self._streams.answer(request, events())


async def _with_slash(request: Request) -> Response:
    """Lead to the address that the page's relative addresses need.

    Without the dot a browser takes the name ``https:host`` for another site.
    """
    name = request.url.path.rpartition("/")[2]
    return RedirectResponse(f"./{name}/", HTTPStatus.PERMANENT_REDIRECT)


def _telling(handler: Handler) -> Handler:
    """Answer errors of a request as JSON."""

    async def answered(request: Request) -> Response:
        try:
            return await handler(request)
        except InputError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error))
        except TemperError as error:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    return answered


def _hours(request: Request) -> int:
    text = request.query_params.get("hours", str(USUAL_HOURS))
    hours = int(text) if _WHOLE.fullmatch(text) else 0
    if not 1 <= hours <= MOST_HOURS:
        raise InputError(f"hours must be a whole number from 1 to {MOST_HOURS}, not {text[:20]!r}")
    return hours


def _answer(document: Mapping[str, Any]) -> Response:
    return Response(json.dumps(document), media_type=JSON)
