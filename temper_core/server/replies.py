"""Replies: the head of an answer, and its body whole or in pieces."""

from collections.abc import Iterable, Mapping

from attrs import frozen

from temper_core.records.endpoints import EVENT_STREAM, Answer, Request
from temper_core.server.files import NoFile, part_of_file
from temper_core.server.headers import (
    NOT_KEPT,
    REVALIDATED,
    SECURITY,
    Head,
    cookie_headers,
    given_headers,
    header_value,
)

OK = 200
NO_CONTENT = 204
NOT_MODIFIED = 304
LOWEST_STATUS, HIGHEST_STATUS = 200, 599
LARGEST_CONTENT_BYTES = 16 * 1024 * 1024


class AnswerTooLargeError(Exception):
    """An answer with more than ``LARGEST_CONTENT_BYTES``."""


@frozen
class Reply:
    """An answer that is ready to be sent.

    Attributes:
        pieces: The body if it is sent in pieces. A caller that does not send them closes them.
        length: The total size of the pieces in bytes, None if it is not known.

    """

    status: int
    head: Head
    content: bytes = b""
    pieces: Iterable[bytes] | None = None
    length: int | None = None
    is_event_stream: bool = False


def reply_of(answer: Answer, request: Request, *, is_plugins: bool = False) -> Reply:
    """Return the reply for *answer*.

    Raises ValueError or TypeError if it cannot be sent, NoFile if its file does not exist.
    """
    _require_sendable(answer)
    caching = REVALIDATED if answer.file is not None else NOT_KEPT
    defaults = {"cache-control": caching, **(SECURITY if is_plugins else {})}
    headers = {**defaults, **given_headers(answer.headers)}
    headers["content-type"] = _media_type(answer)
    cookies = cookie_headers(answer.cookies)
    if answer.file is not None:
        return _file_reply(answer, request, headers, cookies)
    head = (*headers.items(), *cookies)
    if answer.stream is not None:
        is_event_stream = answer.media_type.partition(";")[0].strip() == EVENT_STREAM
        return Reply(answer.status, head, pieces=answer.stream, is_event_stream=is_event_stream)
    return Reply(answer.status, head, bytes(answer.content))


def _file_reply(
    answer: Answer, request: Request, headers: Mapping[str, str], cookies: Head
) -> Reply:
    if answer.file is None:
        raise NoFile
    is_conditional = answer.status == OK
    part = part_of_file(answer.file, request.method, request.headers if is_conditional else {})
    status = part.status if is_conditional else answer.status
    head = (*{**headers, **part.headers}.items(), *cookies)
    return Reply(status, head, part.content, part.pieces, part.length)


def _require_sendable(answer: Answer) -> None:
    status, content = answer.status, answer.content
    if type(status) is not int or not LOWEST_STATUS <= status <= HIGHEST_STATUS:
        raise ValueError(f"answers with the status {status!r:.100}")
    if not isinstance(content, bytes | bytearray):
        raise TypeError(f"answers with content of type {type(content).__name__}, not bytes")
    if len(content) > LARGEST_CONTENT_BYTES:
        raise AnswerTooLargeError(
            f"answers with {len(content)} bytes, more than {LARGEST_CONTENT_BYTES}: "
            "give a file or a stream"
        )
    bodies = [bool(content), answer.file is not None, answer.stream is not None]
    if sum(bodies) > 1:
        raise ValueError("answers with more than one of content, file and stream")
    if status in (NO_CONTENT, NOT_MODIFIED) and any(bodies):
        raise ValueError(f"answers with a body, which the status {status} cannot have")


def _media_type(answer: Answer) -> str:
    media_type = header_value("content-type", answer.media_type)
    if "/" not in media_type:
        raise ValueError(f"answers with the media type {media_type!r:.100}")
    return media_type
