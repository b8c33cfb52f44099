"""The engine's statistics over its Unix socket, requested without blocking, decoded leniently.

The protocol is scx_stats: one JSON object per line each way. Every answer covers the time since
the previous request *on the same connection*. So one connection is kept. Its first answer covers
no time and only provides the layers' names.
"""

import errno
import json
import socket
from collections.abc import Mapping
from typing import Any

from attrs import evolve, field, frozen

from temper_core.errors import EngineError

DEFAULT_PATH = "/var/run/scx/root/stats"
LARGEST_ANSWER_BYTES = 8 * 1024 * 1024
LARGEST_CPU = 8192
LARGEST_NUMBER = 1 << 64
REQUEST = b'{"req":"stats","args":{"target":"top"}}\n'
NOT_THERE = (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR)
CHUNK_BYTES = 256 * 1024
RETRY_S = 1.0
BASELINE_S = 0.5
WORD_BITS = 64
FULL_CPU = 100.0


@frozen
class EngineLayer:
    """One layer's statistics in the engine's units.

    ``util`` is in hundredths of a CPU (100 = one CPU). ``affn_viol``, ``open_idle``, ``preempt``
    and ``migration`` are percentages of ``total``, the layer's scheduling events. ``cpus`` are
    the ids of its CPUs now. ``raw`` keeps every field of the answer.
    """

    name: str
    index: int = 0
    util: float = 0.0
    util_open_frac: float = 0.0
    tasks: int = 0
    total: float = 0.0
    affn_viol: float = 0.0
    open_idle: float = 0.0
    preempt: float = 0.0
    migration: float = 0.0
    slice_us: int = 0
    cpus: tuple[int, ...] = ()
    raw: Mapping[str, Any] = field(factory=dict, repr=False)

    @property
    def cpus_used(self) -> float:
        """CPU time per wall-clock time: 1.0 is one CPU busy throughout."""
        return self.util / FULL_CPU


@frozen
class EngineStats:
    """One answer. ``covers_s`` is the time since the previous request on the connection.

    ``busy`` is a percentage of all CPUs, ``util`` in hundredths of a CPU, ``affn_viol``, ``lo_fb``
    and ``hi_fb`` percentages of ``total`` scheduling events. ``antistall`` is a count that gives
    early warning of a stall. ``proc_ms`` is the engine's own CPU time. ``answered_at`` is in the
    clock of ``StatsClient.step``.
    """

    layers: Mapping[str, EngineLayer]
    at: float = 0.0
    covers_s: float = 0.0
    answered_at: float = 0.0
    total: float = 0.0
    busy: float = 0.0
    util: float = 0.0
    affn_viol: float = 0.0
    hi_fb: float = 0.0
    lo_fb: float = 0.0
    antistall: int = 0
    proc_ms: float = 0.0
    raw: Mapping[str, Any] = field(factory=dict, repr=False)


def decode(line: bytes) -> EngineStats:
    """Decode one answer. Raise EngineError if it is invalid. Any single field may be missing."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise EngineError(f"the engine's statistics are not JSON: {error}") from error
    if not isinstance(answer, dict):
        raise EngineError("the engine's statistics are not a JSON object")
    arguments = answer.get("args")
    body = arguments.get("resp") if isinstance(arguments, dict) else None
    if answer.get("errno") != 0:
        raise EngineError(f"the engine refused to give statistics: {str(body)[:200]}")
    if not isinstance(body, dict) or not isinstance(body.get("layers"), dict):
        raise EngineError("the engine's statistics name no layers")
    layers = {name: _layer(name, table) for name, table in body["layers"].items()}
    return EngineStats(layers=layers, raw=body, **_numbers(body, EngineStats))


def cpu_ids(words: object) -> tuple[int, ...]:
    """Decode a CPU mask: CPU n is bit n % 64 of word n // 64. Other values give no CPU."""
    if not isinstance(words, list) or len(words) > LARGEST_CPU // WORD_BITS:
        return ()
    if any(type(word) is not int or not 0 <= word < 1 << WORD_BITS for word in words):
        return ()
    return tuple(
        index * WORD_BITS + bit
        for index, word in enumerate(words)
        for bit in range(WORD_BITS)
        if word >> bit & 1
    )


def _layer(name: str, table: object) -> EngineLayer:
    if not isinstance(table, dict):
        return EngineLayer(name)
    numbers = _numbers(table, EngineLayer)
    return EngineLayer(name, cpus=cpu_ids(table.get("cpus")), raw=table, **numbers)


OURS = frozenset({"covers_s", "answered_at"})


def _numbers(table: Mapping[str, Any], model: type) -> dict[str, Any]:
    """Return the model's numbers. The engine writes NaN as null, and older ones lack fields."""
    numbers: dict[str, Any] = {}
    for attribute in model.__attrs_attrs__:  # type: ignore[attr-defined]
        if attribute.type in (int, float) and attribute.name not in OURS:
            number = _finite(table.get(attribute.name))
            if number is not None:
                numbers[attribute.name] = attribute.type(number)
    return numbers


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not -LARGEST_NUMBER < value < LARGEST_NUMBER:  # NaN is not between them either
        return None
    return value


class StatsClient:
    """Requests statistics every ``period_s`` over one connection, in small steps.

    Nothing blocks: the socket is non-blocking, and ``step`` sends or receives what it can. It
    raises EngineError if the engine is gone, silent for ``timeout_s``, or sends an invalid answer.
    The connection is then dropped and a new one tried a second later. ``unanswered_since`` is the
    time of the first request without an answer so far: it measures the engine's silence, and not
    the time without requests.
    """

    def __init__(
        self, path: str = DEFAULT_PATH, timeout_s: float = 5.0, *, period_s: float = 1.0
    ) -> None:
        self.path = path
        self.timeout_s = timeout_s
        self.period_s = period_s
        self.latest: EngineStats | None = None
        self.layer_names: frozenset[str] | None = None
        self.last_answer_at: float | None = None
        self.unanswered_since: float | None = None
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._asked_at: float | None = None
        self._asked_before: float | None = None
        self._next_at = 0.0

    def step(self, now: float) -> EngineStats | None:
        """Send and receive without blocking. Return a new answer, if any. Raise EngineError."""
        try:
            return self._advance(now)
        except OSError as error:
            self._drop(now)
            if error.errno in NOT_THERE:
                raise EngineError(f"nothing answers on {self.path}") from error
            raise EngineError(f"lost the connection to {self.path}: {error}") from error
        except EngineError:
            self._drop(now)
            raise

    def close(self) -> None:
        """Close the connection and forget the layers' names. A later step opens a new one."""
        self._disconnect()
        self.layer_names = self.unanswered_since = None
        self._next_at = 0.0

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._asked_at = self._asked_before = None
        self._received.clear()

    def _drop(self, now: float) -> None:
        self._disconnect()
        self._next_at = now + RETRY_S

    def _advance(self, now: float) -> EngineStats | None:
        if self._asked_at is None:
            if now < self._next_at:
                return None
            if self.unanswered_since is None:
                self.unanswered_since = now
            self._ask(now)
        line = self._receive()
        if line is not None:
            return self._take(decode(line), now)
        if self._asked_at is not None and now - self._asked_at > self.timeout_s:
            raise EngineError(f"no statistics within {self.timeout_s:g} s")
        return None

    def _ask(self, now: float) -> None:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.setblocking(False)
            self._socket.connect(self.path)
        self._socket.sendall(REQUEST)
        self._asked_at = now

    def _receive(self) -> bytes | None:
        """Return one whole line, or None while it is not complete."""
        assert self._socket is not None  # noqa: S101 - a request was just sent on it
        while b"\n" not in self._received:
            try:
                chunk = self._socket.recv(CHUNK_BYTES)
            except BlockingIOError:
                return None
            if not chunk:
                raise EngineError("the engine closed the connection")
            self._received += chunk
            if len(self._received) > LARGEST_ANSWER_BYTES:
                raise EngineError(f"the answer is larger than {LARGEST_ANSWER_BYTES} bytes")
        line, _, rest = bytes(self._received).partition(b"\n")
        if rest:
            raise EngineError("the engine sent more than one answer to a request")
        self._received.clear()
        return line

    def _take(self, stats: EngineStats, now: float) -> EngineStats | None:
        requested, before = self._asked_at or now, self._asked_before
        self._asked_before, self._asked_at = requested, None
        self.layer_names = frozenset(stats.layers)
        self.last_answer_at = now
        self.unanswered_since = None
        if before is None:
            self._next_at = now + min(BASELINE_S, self.period_s)
            return None
        self._next_at = max(now, requested + self.period_s)
        self.latest = evolve(stats, covers_s=requested - before, answered_at=now)
        return self.latest
