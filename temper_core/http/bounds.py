"""How much of a server one may have, and for how long."""

from attrs import frozen


@frozen(kw_only=True)
class Bounds:
    """What a server waits for, and how many connections it has. As given for one in a cluster.

    ``rest_s`` and ``stop_s`` are whole seconds, as uvicorn takes them.
    """

    head_s: float = 10.0
    """For the head of a request, from its first byte, or from the beginning of the connection."""
    exchange_s: float = 30.0
    """For the rest of a request and its answer."""
    rest_s: int = 120
    """For the next request, after an answer. Longer than clients in Go keep an idle connection
    (90 s), so that none of them writes into a closed one."""
    handshake_s: float = 10.0
    """For a TLS handshake."""
    most_open: int = 384
    """Connections at a time, without those whose handshake is not done."""
    most_shaking: int = 128
    """TLS handshakes at a time, each of which takes some 200 KiB."""
    most_streams: int = 16
    """Answers at a time that are sent piece by piece, for applications that keep count of them."""
    stream_idle_s: float = 60.0
    """For the next piece of such an answer, and for the client to take it. ``exchange_s`` does not
    bound it."""
    stop_s: int = 5
    """For the requests that are in progress at the stop."""
