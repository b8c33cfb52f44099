"""What is served: ``POST /mutate`` to the API server; health and metrics on a port of their own."""

import asyncio
from collections.abc import Callable
from time import perf_counter

import structlog
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from temper_plugin_density.overcommit.admission import Answer, admit, answered
from temper_plugin_density.overcommit.decisions import Decision
from temper_plugin_density.overcommit.outcomes import Outcome
from temper_plugin_density.overcommit.policy import Policy
from temper_plugin_density.overcommit.tallies import Tallies

LARGEST_BYTES = 3 * 1024 * 1024
"""What the API server itself takes of one object at most."""
BODY_S = 10.0
JSON = "application/json"
METRICS = "text/plain; version=0.0.4; charset=utf-8"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class TooLargeError(Exception):
    """A request is larger than any that the API server makes."""


def webhook_app(policy: Policy, tallies: Tallies, body_s: float = BODY_S) -> Starlette:
    """Return what the API server calls; a request may take *body_s* seconds to come."""

    async def mutate(request: Request) -> Response:
        try:
            async with asyncio.timeout(body_s):
                body = await _body(request)
        except TooLargeError:
            return _too_large(tallies)
        except (TimeoutError, ClientDisconnect):
            return Response(status_code=408)
        began = perf_counter()
        answer = admit(body, policy)
        tallies.seconds.observe(perf_counter() - began)
        _count(tallies, answer)
        return Response(answer.body, media_type=JSON)

    return Starlette(routes=[Route("/mutate", mutate, methods=["POST"])])


async def _body(request: Request) -> bytes:
    taken = bytearray()
    async for chunk in request.stream():
        taken += chunk
        if len(taken) > LARGEST_BYTES:
            raise TooLargeError
    return bytes(taken)


def _count(tallies: Tallies, answer: Answer) -> None:
    tallies.admissions.labels(answer.decision.outcome).inc()
    if not answer.is_dry_run:
        tallies.freed.inc(answer.decision.freed_millis)


def _too_large(tallies: Tallies) -> Response:
    decision = Decision(Outcome.TOO_LARGE, f"the request has more than {LARGEST_BYTES} bytes")
    _count(tallies, Answer(b"", decision))
    log.warning("request_was_too_large", limit_bytes=LARGEST_BYTES)
    # Not read to its end, so nothing can follow on this connection.
    body = answered("", decision)
    return Response(body, status_code=413, media_type=JSON, headers={"connection": "close"})


def observed_app(why_unready: Callable[[], str], tallies: Tallies) -> Starlette:
    """Return what probes and Prometheus ask; *why_unready* gives nothing once pods are served."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        why = why_unready()
        return PlainTextResponse(f"{why or 'ok'}\n", status_code=503 if why else 200)

    async def metrics(_: Request) -> Response:
        return Response(tallies.page(), media_type=METRICS)

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
        ]
    )
