"""Events as they happen, as server-sent events. A comment keeps a quiet stream alive."""

import json
from collections.abc import Iterator

from temper_core.events.document import event_document
from temper_core.events.event_log import EventLog
from temper_core.events.query import Query
from temper_core.records.endpoints import ServerSentEvent

KEEP_ALIVE_S = 10.0
"""How often a stream says something, at least. A bound on idle streams must be longer."""
KEEP_ALIVE = b": still here\n\n"


def streamed(events: EventLog, query: Query, keep_alive_s: float = KEEP_ALIVE_S) -> Iterator[bytes]:
    """Yield what *query* asks for, then every event that comes, until the agent ends.

    Who reads slowly misses what the log has let go of meanwhile, and keeps nobody waiting.
    """
    number = query.after
    yield KEEP_ALIVE  # the answer's head goes out at once
    while True:
        for event in events.after(number):
            number = event.number
            if query.takes(event):
                data = json.dumps(event_document(event), ensure_ascii=False)
                yield ServerSentEvent(data, event.kind, str(event.number)).encode()
        if events.is_closed:
            return
        if not events.wait(number, keep_alive_s) and not events.is_closed:
            yield KEEP_ALIVE
