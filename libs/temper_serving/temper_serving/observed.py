"""The routes that probes and Prometheus read: ``/healthz``, ``/readyz`` and ``/metrics``."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from temper_serving.answers import UNAVAILABLE, line
from temper_serving.certificate_files import CertificateFiles

METRICS = "text/plain; version=0.0.4; charset=utf-8"


def observed_routes(
    why_unready: Callable[[], str],
    page: Callable[[], bytes],
    certificate: CertificateFiles | None = None,
) -> list[Route]:
    """Return the routes. *page* is that of the metrics, in the text format of Prometheus.

    *why_unready* is that of ``probe_routes``. The server is not ready while its *certificate* is
    not valid: its clients refuse it, and a refused connection costs them less than a handshake.
    """

    def why() -> str:
        invalid = "" if certificate is None else certificate.why_invalid()
        return "; ".join(filter(None, (why_unready(), invalid)))

    async def metrics(_: Request) -> Response:
        return Response(page(), media_type=METRICS)

    return [*probe_routes(why), Route("/metrics", metrics)]


def probe_routes(why_unready: Callable[[], str]) -> list[Route]:
    """Return the routes of probes. *why_unready* returns an empty text once the server is ready."""

    async def healthz(_: Request) -> Response:
        return line(200, "ok")

    async def readyz(_: Request) -> Response:
        why = why_unready()
        return line(UNAVAILABLE if why else 200, why or "ok")

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
