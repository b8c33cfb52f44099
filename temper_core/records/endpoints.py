"""HTTP endpoints of plugins and of the agent: requests and answers."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen
from attrs.validators import ge, in_, le, matches_re, optional

from temper_core import documents
from temper_core.errors import DocumentError, InputError
from temper_core.records.names import NAME, is_summary
from temper_core.records.snapshots import Snapshot

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
KIB = 1024
LARGEST_BODY_BYTES = 64 * KIB
MOST_BODY_BYTES = 16 * KIB * KIB
JSON = "application/json"
EVENT_STREAM = "text/event-stream"
_LINE_END = re.compile("\r\n|\r|\n")


@frozen
class Requester:
    """The sender of a request.

    Attributes:
        way: ``socket`` for the local socket, ``token`` for a bearer token, empty for neither.
        name: The token's name.
        uid: The user at the other end of the local socket.
        address: The peer's address over TCP.

    """

    way: str = ""
    name: str = ""
    uid: int | None = None
    address: str = ""

    def __str__(self) -> str:
        """Return ``socket uid 0``, ``token ops``, or the address of an unknown sender."""
        if self.way == "socket":
            return "socket" if self.uid is None else f"socket uid {self.uid}"
        return f"token {self.name}".rstrip() if self.way == "token" else self.address


@frozen
class Request:
    """A request as an endpoint receives it.

    Attributes:
        query: Query and path parameters. Those that the endpoint does not declare are refused.
        snapshot: The last observation; None before the first.
        content: The body, at most ``Endpoint.largest_body_bytes``.
        headers: The headers by name in lower case, without ``authorization``.
        requester: The sender.

    """

    query: Mapping[str, str] = field(factory=dict)
    snapshot: Snapshot | None = None
    content: bytes = b""
    method: str = "GET"
    path: str = "/"
    headers: Mapping[str, str] = field(factory=dict)
    requester: Requester = Requester()

    def json(self) -> Any:  # noqa: ANN401 - JSON
        """Return the body read as JSON, None if it is empty. Raise InputError if it is invalid."""
        if not self.content:
            return None
        try:
            return documents.parse_json(self.content.decode("utf-8"), source="body")
        except UnicodeDecodeError as error:
            raise InputError(f"the body is not UTF-8 text (byte {error.start})") from error
        except DocumentError as error:
            problems = "; ".join(problem.removeprefix("document: ") for problem in error.problems)
            raise InputError(f"the body {problems}") from error


@frozen
class Cookie:
    """A cookie to set. ``max_age_s`` 0 removes it. It is never readable by scripts."""

    name: str = field(validator=matches_re(r"[A-Za-z0-9_-]{1,64}"))
    value: str = field(validator=matches_re(r"[A-Za-z0-9._~+/=-]{0,1024}"))
    max_age_s: int | None = field(default=None, validator=optional(ge(0)))
    path: str = field(default="/", validator=matches_re(r"/[A-Za-z0-9._~/-]{0,200}"))


@frozen
class Answer:
    """A whole HTTP answer. An endpoint may also return any value that JSON can represent.

    Of ``content``, ``file`` and ``stream`` at most one is given.

    Attributes:
        content: At most 16 MiB. A larger body must be a file or a stream.
        headers: They replace the agent's own of the same names, except those that frame the
            answer. ``content-type``, ``set-cookie`` and ``x-content-type-options`` are refused.
        file: A regular file. Served with ``ETag``, ``Last-Modified`` and byte ranges. 404 if it
            does not exist.
        stream: Pieces of the body, sent as they come. It is read in its own thread, within
            bounds on idle time and on the number of streams instead of the plugin's deadline, and
            closed when the client disconnects. A stream with nothing to send yields an empty
            piece to stay within the idle bound. An event stream sends that as a comment.

    """

    content: bytes = b""
    media_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)
    cookies: Sequence[Cookie] = ()
    file: Path | None = None
    stream: Iterable[bytes] | None = None


@frozen
class ServerSentEvent:
    """One event of a stream of the media type ``text/event-stream``."""

    data: str
    event: str = ""
    id: str = ""

    def encode(self) -> bytes:
        """Return the event as it is sent (WHATWG HTML, 9.2.6).

        CR, LF and CRLF end a line there. A line break in ``event`` or ``id`` becomes a space, since
        the rest would be a field of its own.
        """
        fields = (("event", self.event), ("id", self.id))
        head = [f"{key}: {_LINE_END.sub(' ', value)}" for key, value in fields if value]
        lines = [f"data: {line}" for line in _LINE_END.split(self.data)]
        return "\n".join([*head, *lines, "", ""]).encode()


def event_stream(events: Iterable[ServerSentEvent]) -> Answer:
    """Return an answer that sends *events* as they come."""
    return Answer(media_type=EVENT_STREAM, stream=(event.encode() for event in events))


@frozen
class Endpoint:
    """An HTTP endpoint.

    Attributes:
        path: May hold parameters that fill a segment: ``/traces/{id}``. The last may take the
            rest of the path: ``/assets/{file:path}``.
        answer: Returns an ``Answer`` or a JSON value. Anything else is a failure of the plugin.
            Raises InputError for a 400, and MachineError for a 503 by a fact of the node.
        acts: Whether it changes anything, or returns data that is not public. It then needs
            the token or the local socket, refuses requests from other origins, and is audited.
        is_series: Whether one requester sends the same request again and again, such as a sign of
            life. The audit then has the first, and none that follows another within a minute.
        parameters: The meaning of each query and path parameter, by name.
        largest_body_bytes: A larger body is refused with 413.
        body_schema: JSON Schema of the body, for ``/openapi.json``.
        media_type: The media type of the answer, for ``/openapi.json``.

    """

    name: str = field(validator=NAME)
    method: str = field(validator=in_(METHODS))
    path: str = field(validator=matches_re(r"/[a-z0-9/._{}:-]{0,500}"))
    summary: str = field(validator=is_summary)
    answer: Callable[[Request], Any]
    acts: bool = False
    is_series: bool = False
    parameters: Mapping[str, str] = field(factory=dict)
    largest_body_bytes: int = field(
        default=LARGEST_BODY_BYTES, validator=[ge(0), le(MOST_BODY_BYTES)]
    )
    body_schema: Mapping[str, Any] = field(factory=dict)
    media_type: str = JSON
