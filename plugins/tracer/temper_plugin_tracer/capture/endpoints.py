"""The endpoints of captures."""

import base64
import json
from collections.abc import Iterable
from typing import Any

from temper_core import Answer, Endpoint, InputError, Request
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.request import SCHEMA, parse_trace_request
from temper_plugin_tracer.capture.running import HeldError

MEDIA_TYPE = "application/vnd.perfetto.trace"
PART_BYTES = 256 * 1024
"""The agent has a part and its encoded copies in memory."""
ACCEPTED, NOT_FOUND, CONFLICT = 202, 404, 409
_ID = {"id": "The id of a capture."}


def endpoints(captures: Captures) -> Iterable[Endpoint]:
    """Serve ``/trace`` and ``/traces``."""
    doors = _Doors(captures)
    return (
        Endpoint(
            "capture-trace",
            "POST",
            "/trace",
            "Capture the scheduler's events for some seconds. Answers at once with the id.",
            doors.begin,
            acts=True,
            body_schema=SCHEMA,
        ),
        Endpoint(
            "get-traces",
            "GET",
            "/traces",
            "The capture that runs, and those that are kept, the newest first.",
            lambda _: {"traces": captures.documents()},
        ),
        Endpoint(
            "get-trace",
            "GET",
            "/trace/{id}",
            "A finished capture as a file for Perfetto, in ranges too.",
            doors.file,
            acts=True,  # what all processes do at each moment is not public
            parameters=_ID,
            media_type=MEDIA_TYPE,
        ),
        Endpoint(
            "get-trace-part",
            "GET",
            "/trace/{id}/part",
            f"At most {PART_BYTES >> 10} KiB of a finished capture from an offset on, in base64.",
            doors.part,
            acts=True,
            parameters={**_ID, "offset": "Where the part begins, in bytes."},
        ),
        Endpoint(
            "delete-trace",
            "DELETE",
            "/trace/{id}",
            "End a capture that runs and keep what there is, or delete a finished or failed one.",
            doors.delete,
            acts=True,
            parameters=_ID,
        ),
    )


class _Doors:
    def __init__(self, captures: Captures) -> None:
        self._captures = captures

    def begin(self, request: Request) -> Answer:
        try:
            entry = self._captures.begin(
                parse_trace_request(request.json()), str(request.requester)
            )
        except HeldError as error:
            return refusal(error)
        return json_answer(entry, ACCEPTED, {"location": f"/trace/{entry['id']}"})

    def file(self, request: Request) -> Answer:
        capture = request.query["id"]
        path = self._captures.trace(capture)
        if path is None:
            return self._missing(capture)
        name = f'attachment; filename="{capture}.pftrace"'
        return Answer(media_type=MEDIA_TYPE, file=path, headers={"content-disposition": name})

    def part(self, request: Request) -> Answer:
        capture = request.query["id"]
        offset = _offset(request.query.get("offset", "0"))
        path = self._captures.trace(capture)
        if path is None:
            return self._missing(capture)
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(offset)
                content = file.read(PART_BYTES)
        except FileNotFoundError:
            return self._missing(capture)
        encoded = base64.b64encode(content).decode()
        return json_answer({"id": capture, "offset": offset, "bytes": size, "content": encoded})

    def delete(self, request: Request) -> Answer:
        capture, by = request.query["id"], str(request.requester)
        ended = self._captures.end(capture, by)
        if ended is not None:
            return json_answer(ended, ACCEPTED)
        if self._captures.delete(capture, by):
            return json_answer({"id": capture, "state": "deleted"})
        return json_answer({"error": f"there is no trace {capture!r}"}, NOT_FOUND)

    def _missing(self, capture: str) -> Answer:
        if self._captures.is_running(capture):
            return json_answer({"error": f"the trace {capture} is not finished yet"}, CONFLICT)
        return json_answer({"error": f"there is no trace {capture!r}"}, NOT_FOUND)


def refusal(error: HeldError) -> Answer:
    """Return the answer to a request during another capture."""
    headers = {"retry-after": str(int(error.holder.remaining_s) + 1)}
    return json_answer(error.holder.document(), CONFLICT, headers)


def json_answer(document: Any, status: int = 200, headers: Any = None) -> Answer:  # noqa: ANN401 - JSON
    """Return *document* as an answer."""
    return Answer(json.dumps(document).encode(), status=status, headers=headers or {})


def _offset(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > len("1000000000000"):
        raise InputError("offset must be a number of bytes")
    return int(text)
