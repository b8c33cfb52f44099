"""The extender's HTTP application: endpoints for the scheduler, operators and probes."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from attrs import frozen
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from temper_core import InputError
from temper_kube.access import Access
from temper_plugin_power.extender.asking import Reading, view_of
from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.filtering import filtered, remaining
from temper_plugin_power.extender.measures import Measures
from temper_plugin_power.extender.parts import is_small
from temper_plugin_power.extender.questions import read_question
from temper_plugin_power.extender.rating import Moment, points_of, terms_of, written_scores
from temper_plugin_power.extender.showing import shown
from temper_plugin_power.extender.victims import Preemption, read_preemption
from temper_plugin_power.extender.watching import Watches
from temper_plugin_power.placing.subjects import Choices, PodView
from temper_serving.answers import JSON, UNAVAILABLE, document, refusing
from temper_serving.bodies import BodyBudget, RefusedBodyError
from temper_serving.certificate_files import CertificateFiles
from temper_serving.clients import address_of
from temper_serving.lifespans import watching
from temper_serving.observed import observed_routes
from temper_serving.turns import QuestionTurns, Turns
from temper_serving.unsent import Unsent

MOST_BYTES = 64 * 1024 * 1024
"""Some 5,000 whole Node objects."""
MOST_HELD_BYTES = 3 * MOST_BYTES // 2
DEADLINE_S = 2.0
MOST_SHOWING, MOST_OF_CLIENT = 64, 4
"""Requests for everything that wait, in all and for the clients of one network."""
SHARE_OF_UNSENT = 0.5
"""A client that reads no answers leaves room for those of a scheduler."""
REST = 4.0
"""They take a fifth of the event loop, which answers the scheduler and probes too."""

Asked = TypeVar("Asked")
Read = Callable[[bytes], Awaitable[Asked]]


@frozen
class Rules:
    """The settings of the answers."""

    choices: Choices
    reading: Reading
    score_scale: int


class PowerExtender:
    """Answers from the caches that the watches keep. Everything runs in one event loop."""

    def __init__(
        self,
        rules: Rules,
        cluster: Cluster,
        *,
        most_bytes: int = MOST_BYTES,
        deadline_s: float = DEADLINE_S,
        certificate: CertificateFiles | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rules, self._cluster, self._clock = rules, cluster, clock
        self._deadline_s = deadline_s
        self._bodies = BodyBudget(most_bytes, deadline_s, most_held_bytes=MOST_HELD_BYTES)
        self._watches = Watches(cluster)
        self._questions = QuestionTurns()
        self._unsent = Unsent(SHARE_OF_UNSENT)
        self._turns = Turns(MOST_SHOWING, MOST_OF_CLIENT, rest=REST)
        self._certificate = certificate
        self._measures = Measures(cluster, rules.choices, clock, certificate)

    def application(self, access: Access | None = None) -> Starlette:
        """Return the application. It watches the cluster of *access* while it runs."""
        routes = [
            Route("/filter", refusing(self._filter), methods=["POST"]),
            Route("/preempt", refusing(self._preempt), methods=["POST"]),
            Route("/prioritize", refusing(self._prioritize), methods=["POST"]),
            Route("/debug/scoring", refusing(self._show), methods=["GET"]),
            Route("/debug/score", refusing(self._show), methods=["GET"]),
            *observed_routes(self._watches.why_unready, self._measures.text, self._certificate),
        ]
        return Starlette(routes=routes, lifespan=watching(self._watches, access))

    async def _filter(self, request: Request) -> Response:
        async with self._asked(request, read_question) as (began, question):
            moment = self._moment()
            pod = view_of(question.pod, self._cluster, self._rules.reading, moment.now)
            reply = filtered(question, pod, self._cluster, moment)
        self._measures.count(self._measures.filters, self._measures.filter_seconds, pod, began)
        self._measures.count_rejections(reply.causes)
        return self._answer(request, reply.body)

    async def _preempt(self, request: Request) -> Response:
        async with self._asked(request, read_preemption) as (_, preemption):
            reply = remaining(preemption, self._judged(preemption), self._cluster, self._moment())
        return self._answer(request, reply)

    def _judged(self, preemption: Preemption) -> PodView | None:
        """Return the view of the pod. None for one that ``/filter`` refuses."""
        try:
            return view_of(preemption.pod, self._cluster, self._rules.reading, self._clock())
        except InputError:
            return None

    async def _prioritize(self, request: Request) -> Response:
        rules, cluster = self._rules, self._cluster
        async with self._asked(request, read_question) as (began, question):
            moment = self._moment()
            pod = view_of(question.pod, cluster, rules.reading, moment.now)
            terms = terms_of(pod, cluster, rules.choices, moment)
            points = points_of(question.names, cluster, terms, moment)
            reply = written_scores(question.names, points, cluster, rules.score_scale)
        measures = self._measures
        measures.count(measures.priorities, measures.prioritize_seconds, pod, began)
        return self._answer(request, reply)

    def _answer(self, request: Request, reply: str) -> Response:
        return self._unsent.response(reply.encode(), JSON, address_of(request))

    @asynccontextmanager
    async def _asked(
        self, request: Request, read: Read[Asked]
    ) -> AsyncIterator[tuple[float, Asked]]:
        """Yield when the request began, and its question. Raises after the deadline.

        The block is part of the client's turn, so that no other question is held meanwhile.
        """
        began = time.perf_counter()
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._deadline_s):
                    question = await self._read(request, read, held)
            except TimeoutError as error:
                reason = f"no answer within {self._deadline_s:g} s"
                raise RefusedBodyError(UNAVAILABLE, reason) from error
            yield began, question

    async def _read(self, request: Request, read: Read[Asked], held: AsyncExitStack) -> Asked:
        """Read the body, and parse it in the turn of its client. Both end with *held*."""
        body = await held.enter_async_context(self._bodies.held(request))
        turn = self._questions.turn(address_of(request), is_small=is_small(body))
        await held.enter_async_context(turn)
        return await read(body)

    async def _show(self, request: Request) -> Response:
        """Show what is known of all nodes."""
        async with self._turns.turn(address_of(request)):
            return document(shown(self._cluster, self._rules.choices, self._moment()))

    def _moment(self) -> Moment:
        return Moment.of(self._clock(), self._rules.choices)
