"""The answers of ``/fleet/pod/PART``: what the API server knows of one pod."""

import asyncio
import json
from contextlib import nullcontext
from http import HTTPStatus

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from temper_core import InputError, MachineError
from temper_kube.failures import ForbiddenError, NotFoundError
from temper_plugin_dashboard.fleet.guarding import Guard, refusal
from temper_plugin_dashboard.fleet.pod_details import Part, PodDetails, PodQuestion
from temper_serving.answers import JSON
from temper_serving.clients import address_of

AT_ONCE = 4
"""Questions of one part of pods at a time."""
REVISIONS_AT_ONCE = 1
"""A namespace may have many revisions, of a megabyte each."""
HINT = "rights: dashboard.podDetails of the chart, plugins/dashboard/pod-rbac.yaml"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class PodPages:
    """Answers what *details* may tell to open sessions, and logs which session read what."""

    def __init__(self, details: PodDetails, guard: Guard) -> None:
        self._details = details
        self._guard = guard
        self._places = {part: asyncio.Semaphore(AT_ONCE) for part in details.parts}
        if Part.REVISIONS in self._places:
            self._places[Part.REVISIONS] = asyncio.Semaphore(REVISIONS_AT_ONCE)

    def route(self) -> Route:
        """Return the route."""
        return Route("/fleet/pod/{part}", self._guard.guarded(self._part))

    async def _part(self, request: Request) -> Response:
        part = request.path_params["part"]
        try:
            question = _question(request)
            async with self._places.get(part) or nullcontext():
                document = await asyncio.to_thread(self._details.read, part, question)
        except InputError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error))
        except ForbiddenError as error:
            return refusal(HTTPStatus.FORBIDDEN, f"{error} ({HINT})")
        except NotFoundError as error:
            return refusal(HTTPStatus.NOT_FOUND, error.message)
        except MachineError as error:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        subject = f"{question.namespace}/{question.pod}"
        log.info("pod_read", part=part, pod=subject, address=address_of(request))
        return Response(json.dumps(document), media_type=JSON)


def _question(request: Request) -> PodQuestion:
    given = request.query_params
    return PodQuestion(
        given.get("namespace", ""),
        given.get("pod", ""),
        given.get("container", ""),
        is_previous=given.get("previous") == "true",
    )
