"""The engine's statistics: decoding whatever comes, and a conversation that never blocks."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.engine.stats import EngineStats, StatsClient, cpu_ids, decode
from temper_core.errors import EngineError
from tests.patience import PATIENCE_S

BODY: dict[str, Any] = {
    "at": 1_700_000_000.5,
    "total": 1200,
    "busy": 55.5,
    "util": 221.0,
    "antistall": 2,
    "lo_fb": 1.5,
    "affn_viol": 0.25,
    "excl_idle": None,
    "fallback_cpus": {"0": 3},
    "layers": {
        "critical": {"index": 0, "util": 187.5, "tasks": 4, "cpus": [3], "slice_us": 5000},
        "rest": {"index": 1, "util": None, "tasks": 90, "cpus": [0]},
    },
}


def answer_of(body: object) -> bytes:
    return json.dumps({"errno": 0, "args": {"resp": body}}).encode() + b"\n"


class StatsServer:
    """Accepts one connection after another; ``reply`` turns a request into bytes to send back.

    ``None`` closes the connection, ``b""`` says nothing.
    """

    def __init__(self, path: Path, reply: Callable[[int], bytes | None]) -> None:
        self.reply = reply
        self.requests: list[bytes] = []
        self.connections = 0
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(str(path))
        self._listening.listen(4)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self.connections += 1
                with connection, contextlib.suppress(OSError):
                    self._converse(connection)

    def _converse(self, connection: socket.socket) -> None:
        for line in connection.makefile("rb"):
            self.requests.append(line)
            said = self.reply(len(self.requests))
            if said is None:
                return
            connection.sendall(said)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(timeout=PATIENCE_S)


@pytest.fixture
def serve(tmp_path) -> Iterator[Callable[..., tuple[StatsClient, StatsServer]]]:
    opened = []

    def start(reply, **options):
        server = StatsServer(tmp_path / "stats", reply)
        client = StatsClient(str(tmp_path / "stats"), **options)
        opened.extend([client, server])
        return client, server

    yield start
    for one in opened:
        one.close()


def step_until_answered(client: StatsClient, now: float) -> EngineStats | None:
    """Step at one injected moment until the server's thread has answered."""
    before = client.last_answer_at
    for _ in range(500):
        stats = client.step(now)
        if client.last_answer_at != before:
            return stats
        time.sleep(0.005)
    raise AssertionError("the server never answered")


def test_fields_keep_the_engines_units_and_layers_own_cpu_ids():
    stats = decode(answer_of(BODY))

    assert (stats.busy, stats.antistall, stats.lo_fb, stats.affn_viol) == (55.5, 2, 1.5, 0.25)
    assert stats.layers["critical"].cpus == (0, 1)
    assert stats.layers["critical"].cpus_used == 1.875
    assert stats.layers["rest"].cpus == ()


def test_null_and_nan_count_as_not_said():
    body = {"busy": float("nan"), "util": None, "antistall": True, "layers": {"a": {"tasks": "x"}}}

    stats = decode(answer_of(body))

    assert (stats.busy, stats.util, stats.antistall, stats.layers["a"].tasks) == (0.0, 0.0, 0, 0)


def test_fields_that_are_not_known_are_kept():
    body = {"novel": 7, "layers": {"a": {"l_runq_lat_hist": [1, 2]}}}

    stats = decode(answer_of(body))

    assert stats.raw["novel"] == 7
    assert stats.layers["a"].raw["l_runq_lat_hist"] == [1, 2]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"errno":0}',
        b'{"errno":0,"args":{"resp":"x"}}',
        b'{"errno":0,"args":{"resp":{"layers":[1]}}}',
        b"[" * 100_000,
        b'{"errno":0,"args":{"resp":{"layers":{},"at":' + b"9" * 5000 + b"}}}",
    ],
)
def test_what_is_no_answer_is_one_clear_error(line):
    with pytest.raises(EngineError, match="statistics"):
        decode(line)


def test_a_refusal_carries_the_engines_words():
    with pytest.raises(EngineError, match="unknown target"):
        decode(b'{"errno":22,"args":{"resp":"unknown target"}}')


@pytest.mark.parametrize(
    ("words", "cpus"),
    [
        ([0b1010], (1, 3)),
        ([0, 1], (64,)),
        ([1 << 63, 1 << 63], (63, 127)),
        ([-1], ()),
        ([1 << 64], ()),
        ([True], ()),
        ("3", ()),
        ([1] * 1000, ()),
    ],
)
def test_cpu_masks_are_64_bit_words(words, cpus):
    assert cpu_ids(words) == cpus


@given(st.sets(st.integers(0, 511)))
def test_every_set_of_cpus_survives_the_mask(cpus):
    words = [sum(1 << cpu % 64 for cpu in cpus if cpu // 64 == word) for word in range(8)]

    assert cpu_ids(words) == tuple(sorted(cpus))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)
FIELDS = st.sampled_from(["at", "busy", "antistall", "total", "util", "odd"])
LAYER_FIELDS = st.sampled_from(["index", "util", "tasks", "cpus", "total", "odd"])


@settings(max_examples=80)
@given(
    st.dictionaries(FIELDS, JSON),
    st.dictionaries(st.text(max_size=5), JSON | st.dictionaries(LAYER_FIELDS, JSON)),
)
def test_no_field_of_any_type_breaks_an_answer(fields, layers):
    stats = decode(answer_of({**fields, "layers": layers}))

    assert set(stats.layers) == set(layers)


@settings(max_examples=80)
@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_an_answer_or_an_engine_error(line):
    try:
        stats = decode(line)
    except EngineError:
        return
    assert isinstance(stats, EngineStats)


def test_the_first_answer_covers_nothing_and_only_names_the_layers(serve):
    client, server = serve(lambda _: answer_of(BODY))

    first = step_until_answered(client, now=100.0)

    assert first is None
    assert client.latest is None
    assert client.layer_names == {"critical", "rest"}
    assert json.loads(server.requests[0]) == {"req": "stats", "args": {"target": "top"}}


def test_later_answers_say_how_long_they_cover_and_use_one_connection(serve):
    client, server = serve(lambda _: answer_of(BODY), period_s=5.0)
    step_until_answered(client, now=100.0)

    second = step_until_answered(client, now=100.5)
    third = step_until_answered(client, now=105.5)

    assert second is not None
    assert third is not None
    assert (second.covers_s, third.covers_s) == (0.5, 5.0)
    assert client.latest == third
    assert server.connections == 1


def test_nothing_is_asked_before_the_period_is_over(serve):
    client, server = serve(lambda _: answer_of(BODY), period_s=5.0)
    step_until_answered(client, now=0.0)
    step_until_answered(client, now=0.5)

    assert [client.step(now) for now in (1.0, 3.0, 5.4)] == [None, None, None]
    assert len(server.requests) == 2


def test_an_engine_that_says_nothing_is_an_error_after_the_timeout(serve):
    client, _ = serve(lambda _: b"", timeout_s=5.0)

    assert client.step(0.0) is None
    assert client.step(4.9) is None
    with pytest.raises(EngineError, match="no statistics within 5 s"):
        client.step(5.1)


def test_half_an_answer_is_waited_for_without_blocking(serve):
    client, _ = serve(lambda _: b'{"errno":0,', timeout_s=5.0)

    started = time.monotonic()
    answers = [client.step(now) for now in (0.0, 1.0, 2.0)]

    assert answers == [None, None, None]
    assert time.monotonic() - started < 5.0


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"nonsense\n", "not JSON"),
        (answer_of(BODY) + b"more", "more than one answer"),
        (None, "closed the connection"),
    ],
)
def test_an_engine_that_misbehaves_is_asked_again_on_a_new_connection(serve, said, error):
    client, server = serve(lambda count: said if count == 1 else answer_of(BODY))

    with pytest.raises(EngineError, match=error):
        step_until_answered(client, now=0.0)
    assert client.step(0.5) is None
    step_until_answered(client, now=2.0)

    assert client.layer_names == {"critical", "rest"}
    assert server.connections == 2


def test_an_endless_answer_is_cut_off(serve):
    client, _ = serve(lambda _: b"x" * (9 * 1024 * 1024))

    with pytest.raises(EngineError, match="larger than"):
        step_until_answered(client, now=0.0)


def test_a_missing_socket_is_an_error_that_names_it_and_is_tried_again(tmp_path):
    client = StatsClient(str(tmp_path / "stats"))

    with pytest.raises(EngineError, match="nothing answers on"):
        client.step(0.0)
    assert client.step(0.5) is None
    with pytest.raises(EngineError, match="nothing answers on"):
        client.step(1.5)


def test_a_stale_socket_file_counts_as_nobody_there(tmp_path):
    server = StatsServer(tmp_path / "stats", lambda _: b"")
    server.close()
    client = StatsClient(str(tmp_path / "stats"))

    with pytest.raises(EngineError, match="nothing answers on"):
        client.step(0.0)
