"""The endpoints of events: a document, a stream, and the kinds."""

from collections.abc import Callable
from typing import Any

from attrs import evolve, frozen

from temper_core.errors import InputError
from temper_core.events.document import event_document, plain_line
from temper_core.events.event_log import EventLog
from temper_core.events.event_stream import streamed
from temper_core.events.query import PARAMETERS, STREAM_PARAMETERS, Query, read_query
from temper_core.records.endpoints import EVENT_STREAM, Answer, Endpoint, Request
from temper_core.records.events import LONGEST_REASON
from temper_core.suggestions import did_you_mean

SCHEMA_VERSION = 1
LAST_EVENT_ID = "last-event-id"


@frozen
class EventEndpoints:
    """Answers for the log that *log* returns."""

    log: Callable[[], EventLog]

    def table(self) -> tuple[Endpoint, ...]:
        """Return the endpoints."""
        return (
            Endpoint(
                "list-events",
                "GET",
                "/events",
                "The events of this node, oldest first.",
                self._list,
                parameters=PARAMETERS,
            ),
            Endpoint(
                "list-event-kinds",
                "GET",
                "/events/kinds",
                "Every kind of event, with its source, level and meaning.",
                self._kinds,
            ),
            Endpoint(
                "stream-events",
                "GET",
                "/events/stream",
                "New events as server-sent events; with since, earlier ones first.",
                self._stream,
                parameters=STREAM_PARAMETERS,
                media_type=EVENT_STREAM,
            ),
        )

    def _list(self, request: Request) -> Any:  # noqa: ANN401 - JSON
        events = self.log()
        query = _judged(read_query(request.query), events)
        selected = query.chosen(events.after(query.after))
        return {
            "schema_version": SCHEMA_VERSION,
            "last": events.last,
            "events": [event_document(event) for event in selected],
        }

    def _kinds(self, _: Request) -> Any:  # noqa: ANN401 - JSON
        kinds = [
            {
                "name": kind.name,
                "source": source,
                "level": kind.level,
                "summary": plain_line(str(kind.summary), LONGEST_REASON),
            }
            for source, kind in self.log().kinds
        ]
        return {"schema_version": SCHEMA_VERSION, "kinds": kinds}

    def _stream(self, request: Request) -> Answer:
        """Begin after ``Last-Event-ID``, which a reconnecting browser sends, ``since``, or now."""
        events = self.log()
        since = request.headers.get(LAST_EVENT_ID, "") or request.query.get("since", "")
        query = read_query({**request.query, "since": since or str(events.last)})
        stream = streamed(events, _judged(query, events))
        return Answer(media_type=EVENT_STREAM, stream=stream)


def _judged(query: Query, events: EventLog) -> Query:
    """Begin at the oldest event if the number is beyond the log, which has then been reset.

    Raises InputError for a kind that nothing declares, and that no kept event is of.
    """
    declared = {kind.name for _, kind in events.kinds}
    if unknown := query.kinds - declared:
        # An instrument that has been removed may have left events.
        for kind in sorted(unknown - {event.kind for event in events.after()}):
            meant = did_you_mean(kind, declared)
            raise InputError(f"kind: there is none called {kind!r}{meant} (see /events/kinds)")
    return evolve(query, after=0) if query.after > events.last else query
