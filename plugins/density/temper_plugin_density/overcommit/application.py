"""The HTTP applications: ``POST /mutate`` for the API server, and one for health and metrics."""

from collections.abc import Callable
from time import perf_counter

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from temper_plugin_density.overcommit.admission import Answer, admit, answered
from temper_plugin_density.overcommit.decisions import AdmissionDecision
from temper_plugin_density.overcommit.outcomes import Outcome
from temper_plugin_density.overcommit.policy import MOST_FREED_MILLIS, Policy
from temper_plugin_density.overcommit.tallies import Tallies
from temper_serving.answers import JSON
from temper_serving.bodies import (
    TOO_LARGE,
    TOO_MANY,
    WITHIN_S,
    BodyBudget,
    RefusedBodyError,
)
from temper_serving.clients import address_of
from temper_serving.observed import observed_routes
from temper_serving.turns import BusyError, Turns

LARGEST_BYTES = 3 * 1024 * 1024
"""The API server's own limit for one object."""
MOST_WAITING = 512
"""Requests that wait for their turn. All of an API server come from one address, so no lesser bound
holds for a client."""


def webhook_app(policy: Policy, tallies: Tallies, body_s: float = WITHIN_S) -> Starlette:
    """Return the application that the API server calls. A request may take *body_s* s to arrive."""
    bodies = BodyBudget(LARGEST_BYTES, body_s)
    turns = Turns(MOST_WAITING, most_of_client=MOST_WAITING)

    async def mutate(request: Request) -> Response:
        try:
            # A large pod takes some 30 ms of the event loop, which answers probes too.
            async with bodies.held(request) as body, turns.turn(address_of(request)):
                began = perf_counter()
                answer = admit(body, policy)
        except RefusedBodyError as error:
            return _refused(error, tallies)
        except BusyError as error:
            return _refused(RefusedBodyError(TOO_MANY, str(error)), tallies)
        tallies.seconds.observe(perf_counter() - began)
        _count(tallies, answer)
        return Response(answer.body, media_type=JSON)

    return Starlette(routes=[Route("/mutate", mutate, methods=["POST"])])


def _count(tallies: Tallies, answer: Answer) -> None:
    tallies.admissions.labels(answer.decision.outcome).inc()
    if not answer.is_dry_run and answer.decision.freed_millis <= MOST_FREED_MILLIS:
        tallies.freed.inc(answer.decision.freed_millis)


def _refused(error: RefusedBodyError, tallies: Tallies) -> Response:
    outcome = Outcome.TOO_LARGE if error.status == TOO_LARGE else Outcome.REFUSED
    decision = AdmissionDecision(outcome, str(error))
    _count(tallies, Answer(b"", decision))
    # The body was not read to its end, so the connection cannot be used again.
    body = answered("", decision)
    headers = {"connection": "close"}
    return Response(body, status_code=error.status, media_type=JSON, headers=headers)


def observed_app(why_unready: Callable[[], str], tallies: Tallies) -> Starlette:
    """Return the application for probes and Prometheus.

    *why_unready* returns an empty text once pods are served.
    """
    return Starlette(routes=observed_routes(why_unready, tallies.page))
