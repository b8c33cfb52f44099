"""The bounds of a server: connections, and the time for each step."""

from attrs import frozen


@frozen(kw_only=True)
class Bounds:
    """The times that a server waits, and its numbers of connections. Defaults suit a cluster.

    ``rest_s`` and ``stop_s`` are whole seconds, because uvicorn takes integers.
    """

    head_s: float = 10.0
    """For the head of a request, from its first byte or from the start of the connection."""
    exchange_s: float = 30.0
    """For the rest of a request and its answer."""
    rest_s: int = 120
    """For the next request after an answer. Longer than clients in Go keep an idle connection
    (90 s), so that no such client writes into a closed one."""
    handshake_s: float = 10.0
    """For a TLS handshake."""
    most_open: int = 384
    """Places, which are the connections that are served at a time. A connection takes one with its
    first request."""
    most_waiting: int = 128
    """Connections that have asked nothing yet, and requests that wait for a place, each. With more,
    the oldest is closed."""
    wait_s: float = 2.0
    """For the first request of a connection where no place is free, and for a place."""
    probes: frozenset[str] = frozenset({"/healthz", "/readyz"})
    """Paths that are answered without a place. Their answers have to be short and quick."""
    most_shaking: int = 128
    """Concurrent TLS handshakes, each of some 200 KiB."""
    most_streams: int = 16
    """Concurrent streamed answers, for applications that count them."""
    stream_idle_s: float = 60.0
    """For the next piece of a streamed answer, and for the client to read it. ``exchange_s`` does
    not bound it."""
    stop_s: int = 5
    """For the requests in progress at the stop."""
