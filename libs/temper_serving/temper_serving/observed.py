"""The routes that probes and Prometheus read: ``/healthz``, ``/readyz`` and ``/metrics``."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from temper_serving.answers import UNAVAILABLE, line

METRICS = "text/plain; version=0.0.4; charset=utf-8"


def observed_routes(why_unready: Callable[[], str], page: Callable[[], bytes]) -> list[Route]:
    """Return the routes. *page* is that of the metrics, in the text format of Prometheus.

    *why_unready* is that of ``probe_routes``.
    """

    async def metrics(_: Request) -> Response:
        return Response(page(), media_type=METRICS)

    return [*probe_routes(why_unready), Route("/metrics", metrics)]


def probe_routes(why_unready: Callable[[], str]) -> list[Route]:
    """Return the routes of probes. *why_unready* returns an empty text once the server is ready."""

    async def healthz(_: Request) -> Response:
        return line(200, "ok")

    async def readyz(_: Request) -> Response:
        why = why_unready()
        return line(UNAVAILABLE if why else 200, why or "ok")

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
