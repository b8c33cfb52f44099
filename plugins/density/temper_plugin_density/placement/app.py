"""The extender's HTTP application: endpoints for the scheduler, operators and probes."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from temper_core import InputError
from temper_kube.access import Access
from temper_plugin_density.placement.asking import PodReader
from temper_plugin_density.placement.exchange import (
    answer,
    read_pod_or_question,
    read_question,
)
from temper_plugin_density.placement.explaining import (
    ANSWERED,
    RECKONED,
    RECKONED_AGAIN,
    Decisions,
    ScoreRecord,
    explain,
)
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.measures import ANSWERED as WAS_ANSWERED
from temper_plugin_density.placement.measures import REFUSED, Measures
from temper_plugin_density.placement.scoring import Score
from temper_plugin_density.placement.watching import Watches
from temper_serving.answers import JSON, document, line, refusing
from temper_serving.bodies import BodyBudget, RefusedBodyError
from temper_serving.clients import address_of
from temper_serving.lifespans import watching
from temper_serving.observed import observed_routes
from temper_serving.turns import BusyError, QuestionTurns, Turns

MOST_BYTES = 4 * 1024 * 1024
"""10,000 names of nodes and the largest Pod object, or some 200 whole Node objects."""
MOST_EXPLAINED = 500
"""Nodes of one explanation. A client may be slow to read it, or not read it at all."""
LARGE_BYTES = 64 * 1024
"""Larger bodies have turns of their own, so that small requests come between."""
MOST_EXPLANATIONS, MOST_OF_CLIENT = 64, 4
"""Explanations that wait, in all and for the clients of one network."""
REST = 4.0
"""Explanations take a fifth of the event loop, which answers the scheduler and probes too."""


class Extender:
    """Answers from the ledger that the watches keep. Everything runs in one event loop."""

    def __init__(self, reader: PodReader, ledger: Ledger, most_bytes: int = MOST_BYTES) -> None:
        self._reader = reader
        self._ledger = ledger
        self._bodies = BodyBudget(most_bytes, most_held_bytes=2 * most_bytes)
        self._watches = Watches(ledger, reader)
        self._decisions = Decisions()
        self._questions = QuestionTurns()
        self._turns = Turns(MOST_EXPLANATIONS, MOST_OF_CLIENT, rest=REST)
        self._measures = Measures(ledger, self._watches)

    def application(self, access: Access | None = None) -> Starlette:
        """Return the application. It watches the cluster of *access* while it runs."""
        routes = [
            Route("/prioritize", refusing(self._prioritize), methods=["POST"]),
            Route("/debug/score", refusing(self._recall), methods=["GET"]),
            Route("/debug/score", refusing(self._try), methods=["POST"]),
            *observed_routes(self._why_unready, self._measures.text),
        ]
        return Starlette(routes=routes, lifespan=watching(self._watches, access))

    async def _prioritize(self, request: Request) -> Response:
        began = time.perf_counter()
        try:
            async with self._turn(request) as body:
                response, scores = self._answered(request, body)
        except (InputError, RefusedBodyError, BusyError):
            self._measures.requests.labels(REFUSED).inc()
            raise
        self._measures.count_scores(scores)
        self._measures.requests.labels(WAS_ANSWERED).inc()
        self._measures.seconds.observe(time.perf_counter() - began)
        return response

    def _answered(self, request: Request, body: bytes) -> tuple[Response, tuple[Score, ...]]:
        question = read_question(body, self._reader)
        scores = question.scores(self._ledger)
        self._decisions.keep(ScoreRecord(question.demand, scores, time.time(), address_of(request)))
        return Response(answer(scores), media_type=JSON), scores

    async def _recall(self, request: Request) -> Response:
        """Explain the scores of a recently scored or bound pod."""
        async with self._turns.turn(address_of(request)):
            return self._recalled(request)

    def _recalled(self, request: Request) -> Response:
        parameters = request.query_params
        pod = "/".join(filter(None, (parameters.get("namespace"), parameters.get("pod"))))
        answers = self._decisions.of(pod)
        asker = parameters.get("asked_by")
        chosen = [answer for answer in answers if asker in (None, answer.asker)]
        decision, source = (chosen[0] if chosen else None), ANSWERED
        if decision is None and asker is None and (bound := self._ledger.find_pod(pod)):
            scores = self._ledger.scores(bound[1], self._ledger.nodes)
            decision, source = ScoreRecord(bound[1], scores, time.time()), RECKONED_AGAIN
        if decision is None:
            message = "is neither bound nor recently scored: POST the Pod object"
            return line(404, f"{pod or '?pod=namespace/name'} {message}")
        askers = [answer.asker for answer in answers if answer is not decision]
        return document(
            {
                **explain(decision, self._ledger, source, MOST_EXPLAINED),
                "also_asked_by": askers,
            }
        )

    @asynccontextmanager
    async def _turn(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body once it is the client's turn to have it parsed."""
        async with self._bodies.held(request) as body:
            is_small = len(body) <= LARGE_BYTES
            async with self._questions.turn(address_of(request), is_small=is_small):
                yield body

    async def _try(self, request: Request) -> Response:
        """Explain the scores of the pod in the body. The result is not kept."""
        async with self._turn(request) as body:
            question = read_pod_or_question(body, self._reader)
        async with self._turns.turn(address_of(request)):
            decision = ScoreRecord(question.demand, question.scores(self._ledger), time.time())
            return document(explain(decision, self._ledger, RECKONED, MOST_EXPLAINED))

    def _why_unready(self) -> str:
        return "; ".join(
            f"{status.resource}: {status.reason}"
            for status in (self._watches.nodes, self._watches.pods)
            if not status.has_listed.is_set()
        )
