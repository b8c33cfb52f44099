"""The stream of events, as server-sent events. A comment keeps a quiet stream alive."""

import json
from collections.abc import Iterator

from temper_core.events.document import event_document
from temper_core.events.event_log import EventLog
from temper_core.events.query import Query
from temper_core.records.endpoints import ServerSentEvent

KEEP_ALIVE_S = 10.0
"""The longest pause between two writes. A bound on idle streams must be longer."""
KEEP_ALIVE = b": still here\n\n"


def streamed(events: EventLog, query: Query, keep_alive_s: float = KEEP_ALIVE_S) -> Iterator[bytes]:
    """Yield the events of *query*, then every new one, until the agent ends.

    A slow reader misses events that the log has dropped meanwhile, and delays no other reader.
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
