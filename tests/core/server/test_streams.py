"""Streams over real sockets: what they send, what ends them, and whom they do not disturb."""

import queue
import re
import socket
import threading
import time
from contextlib import ExitStack

import httpx2
import pytest
from attrs import evolve

from temper_core import hookimpl
from temper_core.plugin_host import PluginHost
from temper_core.records.endpoints import Answer, Endpoint, ServerSentEvent, event_stream
from temper_core.server import pace, streams
from temper_core.server.agent_server import BOUNDS
from tests.control_plane.cluster import wait_until
from tests.core.plugin_host import hostility
from tests.patience import PATIENCE_S

# A thread that is interrupted may just be inside hypothesis' own hook of the garbage collector,
# which cannot raise.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*gc_callback:pytest.PytestUnraisableExceptionWarning"
)

TOKEN = "0123456789abcdef-the-secret"
ASK = b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\n"
PART = "stream of endpoint stream"


def stream(pieces, media_type="text/event-stream"):
    """Return an endpoint whose stream is what *pieces* returns."""
    answer = lambda _: Answer(media_type=media_type, stream=pieces())  # noqa: E731 - as short as it is
    return ("shop", Endpoint("stream", "GET", "/stream", "A stream.", answer))


def wait_for(is_so, seconds=PATIENCE_S):
    until = time.monotonic() + seconds
    while not is_so() and time.monotonic() < until:
        time.sleep(0.01)
    assert is_so()


def read_to_the_end(raw):
    read = b""
    try:
        while piece := raw.recv(65536):
            read += piece
    except ConnectionResetError:
        pass
    return read


class Tap:
    """Pieces that a test hands out; knows when it is closed."""

    def __init__(self):
        self.pieces, self.closed, self.asked = queue.Queue(), threading.Event(), threading.Event()

    def __iter__(self):
        try:
            while True:
                self.asked.set()
                try:
                    piece = self.pieces.get(timeout=0.05)
                except queue.Empty:
                    piece = b""
                yield piece
        finally:
            self.closed.set()


@pytest.fixture
def tap():
    return Tap()


def test_events_come_as_they_are_given(start, view):
    events = [ServerSentEvent("1", "a", "7"), ServerSentEvent("x\ny")]
    view.served = [stream(lambda: event_stream(events).stream)]

    response = start().tcp.get("/stream")

    assert response.headers["content-type"] == "text/event-stream"
    assert response.text == "event: a\nid: 7\ndata: 1\n\ndata: x\ndata: y\n\n"
    wait_for(lambda: view.ended == [("shop", PART, "", False)])


def test_a_piece_is_sent_before_the_next_is_there_and_silence_is_a_comment(start, view, tap):
    view.served = [stream(lambda: iter(tap))]
    agent = start()
    with agent.connect() as raw:
        raw.sendall(ASK)
        tap.pieces.put(b"data: first\n\n")

        read = b""
        while b"first" not in read or b"\r\n:\n\n\r\n" not in read:
            read += raw.recv(1000)
        raw.close()

    assert tap.closed.wait(PATIENCE_S)
    wait_for(lambda: view.ended == [("shop", PART, "", False)])


@pytest.mark.parametrize("way", ["connect", "connect_locally"])
def test_an_iterator_is_closed_when_its_client_goes(start, view, tap, way):
    view.served = [stream(lambda: iter(tap))]
    with getattr(start(), way)() as raw:
        raw.sendall(ASK)
        assert tap.asked.wait(PATIENCE_S)

    assert tap.closed.wait(PATIENCE_S)
    wait_for(lambda: view.ended == [("shop", PART, "", False)])


def test_an_iterator_is_closed_when_the_agent_stops(start, view, tap, server_threads):
    view.served = [stream(lambda: iter(tap))]
    agent = start()
    with agent.connect() as raw:
        raw.sendall(ASK)
        assert tap.asked.wait(PATIENCE_S)
        began = time.monotonic()
        agent.server.stop()
        took_s = time.monotonic() - began
        end = read_to_the_end(raw)

    assert tap.closed.is_set()
    assert end.endswith(b"0\r\n\r\n")
    assert took_s < 5
    wait_for(lambda: server_threads() == [])


def test_a_stream_lasts_longer_than_an_answer_may_take(start, view, tap):
    view.served = [stream(lambda: iter(tap))]
    agent = start(bounds=evolve(BOUNDS, exchange_s=0.3))
    with agent.connect() as raw:
        raw.sendall(ASK)
        time.sleep(1.0)
        tap.pieces.put(b"data: late\n\n")

        read = b""
        while b"late" not in read:
            piece = raw.recv(1000)
            assert piece
            read += piece


def raising():
    yield b"data: 1\n\n"
    raise RuntimeError("the disk is full")


def odd_error():
    yield b"data: 1\n\n"
    raise hostility.error(__str__=hostility.exits)


def exiting():
    yield b"data: 1\n\n"
    raise SystemExit(3)


def texts():
    yield b"data: 1\n\n"
    yield "data: 2\n\n"


def nothings():
    yield b"data: 1\n\n"
    yield None


def large():
    yield b"data: 1\n\n"
    yield b"x" * (1024 * 1024 + 1)


class Unclosable:
    """An iterator that fails at its end."""

    def __iter__(self):
        return iter([b"data: 1\n\n"])

    def close(self):
        raise ValueError("cannot be closed")


@pytest.mark.parametrize(
    ("pieces", "failure"),
    [
        (raising, "RuntimeError: the disk is full"),
        (exiting, "SystemExit: 3"),
        (texts, "sent a piece of type str, not bytes"),
        (nothings, "sent a piece of type NoneType, not bytes"),
        (odd_error, "OddError: its message cannot be read"),
        (large, "sent a piece of 1048577 bytes, more than 1048576"),
        (lambda: 7, "TypeError: 'int' object is not iterable"),
    ],
)
def test_a_stream_that_fails_is_cut_and_counted_and_the_next_client_is_served(
    start, view, pieces, failure
):
    view.served = [stream(pieces)]
    agent = start()

    with agent.connect() as raw:
        raw.sendall(ASK)
        read = read_to_the_end(raw)

    assert not read.endswith(b"0\r\n\r\n")
    wait_for(lambda: view.ended == [("shop", PART, failure, False)])
    assert agent.tcp.get("/healthz").status_code == 200


def test_an_iterator_that_cannot_be_closed_is_counted(start, view):
    view.served = [stream(Unclosable)]

    response = start().tcp.get("/stream")

    assert response.text == "data: 1\n\n"
    wait_for(lambda: view.ended == [("shop", PART, "ValueError: cannot be closed", False)])


def test_an_iterator_that_loops_in_silence_is_interrupted_and_counted(start, view):
    ended = threading.Event()

    def loops():
        try:
            while True:
                sum(range(100))
        finally:
            ended.set()
        yield b""

    view.served = [stream(loops)]
    agent = start(bounds=evolve(BOUNDS, stream_idle_s=0.3))
    with agent.connect() as raw:
        raw.sendall(ASK)
        read_to_the_end(raw)

    assert ended.wait(PATIENCE_S)
    wait_for(lambda: view.ended == [("shop", PART, "sent nothing for 0.3 s", False)])


def test_an_iterator_that_blocks_for_ever_hangs_and_costs_only_its_own_connection(
    start, view, monkeypatch
):
    monkeypatch.setattr(streams, "GRACE_S", 0.2)
    release = threading.Event()

    def blocks():
        yield b"data: 1\n\n"
        release.wait()
        yield b""

    view.served = [stream(blocks)]
    agent = start(bounds=evolve(BOUNDS, stream_idle_s=0.3))
    with agent.connect() as raw:
        raw.sendall(ASK)
        read_to_the_end(raw)

    wait_for(lambda: view.ended == [("shop", PART, "sent nothing for 0.3 s", True)])
    assert agent.tcp.get("/healthz").status_code == 200
    release.set()


def test_an_iterator_that_blocks_while_it_is_closed_hangs_too(start, view, tap, monkeypatch):
    monkeypatch.setattr(streams, "GRACE_S", 0.2)
    release = threading.Event()

    def clings():
        try:
            yield b"data: 1\n\n"
            yield from tap
        finally:
            release.wait()

    view.served = [stream(clings)]
    with start(bounds=evolve(BOUNDS, stream_idle_s=0.3)).connect() as raw:
        raw.sendall(ASK)
        assert tap.asked.wait(PATIENCE_S)

    wait_for(lambda: view.ended == [("shop", PART, "did not close for 0.3 s", True)])
    release.set()


def test_a_stream_that_was_set_aside_is_refused_and_closed(start, view):
    closed = threading.Event()

    class Closable:
        def close(self):
            closed.set()

    view.served = [stream(Closable)]
    view.lost = {("shop", PART): "did not return"}

    response = start().tcp.get("/stream")

    assert response.status_code == 503
    assert "of plugin 'shop' is set aside: did not return" in response.json()["error"]
    assert closed.is_set()


def test_a_flood_is_held_to_its_pace_and_ended(start, view, monkeypatch):
    monkeypatch.setattr(pace, "FLOOD_S", 2)
    # A busy machine does not send 1,000 pieces in a second, so that no stream would be a flood.
    monkeypatch.setattr(pace, "MOST_PIECES_PER_S", 20)
    count = [0]

    def flood():
        while True:
            count[0] += 1
            yield b"x"

    view.served = [stream(flood)]
    agent = start()
    with agent.connect() as raw:
        raw.sendall(ASK)
        began = time.monotonic()
        reading = threading.Thread(target=read_to_the_end, args=(raw,))
        reading.start()
        answered = []
        while reading.is_alive():
            asked = time.monotonic()
            assert agent.tcp.get("/healthz").status_code == 200
            answered.append(time.monotonic() - asked)
        reading.join()

    assert count[0] <= pace.MOST_PIECES_PER_S * (time.monotonic() - began + 1)
    assert max(answered) < 2
    failure = "floods: it sends more pieces than there may be"
    wait_for(lambda: view.ended == [("shop", PART, failure, False)])


def test_a_client_that_does_not_read_is_hung_up_on_and_holds_little(start, view):
    sent = [0]

    def endless():
        while True:
            sent[0] += 65536
            yield b"x" * 65536

    view.served = [stream(endless, "application/octet-stream")]
    with start(bounds=evolve(BOUNDS, stream_idle_s=0.5)).connect() as raw:
        raw.sendall(ASK)
        wait_for(lambda: view.ended != [])

    assert view.ended == [("shop", PART, "", False)]
    assert sent[0] < 64 << 20


def test_an_odd_piece_is_sent_as_the_bytes_that_it_holds(start, view):
    odd = type("Odd", (bytes,), {"__len__": lambda _: 0, "__bytes__": lambda _: b"other"})
    view.served = [stream(lambda: [odd(b"data: 1\n\n")])]

    assert start().tcp.get("/stream").text == "data: 1\n\n"


def test_a_stream_whose_attributes_sleep_delays_no_other_request(start, view, tap):
    class Sleeping:
        def __getattribute__(self, name):
            return tap.closed.wait(PATIENCE_S) if name == "close" else None

    view.served = [stream(Sleeping)]
    agent = start()
    asking = threading.Thread(target=agent.tcp.head, args=("/stream",))

    asking.start()
    time.sleep(0.2)
    begun = time.monotonic()
    status = agent.tcp.get("/healthz").status_code
    waited_s = time.monotonic() - begun
    tap.closed.set()
    asking.join()

    assert (status, waited_s < PATIENCE_S / 2) == (200, True)


def test_head_of_a_stream_reads_nothing_of_it(start, view):
    closed = threading.Event()

    class Closable:
        def __iter__(self):
            raise AssertionError

        def close(self):
            closed.set()

    view.served = [stream(Closable)]

    response = start().tcp.head("/stream")

    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream"
    assert closed.is_set()
    assert view.ended == []


@pytest.mark.parametrize("way", ["connect", "connect_locally"])
def test_64_streams_keep_nobody_from_probing_scraping_or_safe_mode(
    start, view, tap, token_file, way
):
    view.served = [stream(lambda: iter(tap))]
    agent = start(token_file)
    with ExitStack() as stack:
        opened = [stack.enter_context(getattr(agent, way)()) for _ in range(64)]
        heads = [head_of(raw) for raw in opened]

        asked = time.monotonic()
        statuses = [agent.tcp.get(path).status_code for path in ("/healthz", "/metrics")]
        acting = [
            agent.unix.put("/safe-mode", json={"requested": True}).status_code,
            agent.tcp.put(
                "/safe-mode",
                json={"requested": True},
                headers={"authorization": f"Bearer {TOKEN}"},
            ).status_code,
        ]
        took_s = time.monotonic() - asked

    assert statuses == [200, 200]
    assert acting == [200, 200]
    assert took_s < 5
    served = BOUNDS.most_streams // (2 if way == "connect" else 1)
    assert sum(head.startswith(b"HTTP/1.1 200") for head in heads) == served
    refused = [head for head in heads if head.startswith(b"HTTP/1.1 503")]
    assert all(b"retry-after: 5" in head for head in refused)


def test_a_client_leaves_half_of_the_streams_to_others(start, view, tap):
    view.served = [stream(lambda: iter(tap))]
    agent = start()
    with ExitStack() as stack:
        greedy = [head_of(stack.enter_context(agent.connect())) for _ in range(20)]
        head = head_of(stack.enter_context(dial(agent, "127.0.0.2")))

    assert sum(each.startswith(b"HTTP/1.1 200") for each in greedy) == BOUNDS.most_streams // 2
    assert head.startswith(b"HTTP/1.1 200")


def test_two_greedy_clients_leave_streams_to_others(start, view, tap):
    view.served = [stream(lambda: iter(tap))]
    agent = start()
    with ExitStack() as stack:
        heads = {
            host: [head_of(stack.enter_context(dial(agent, host))) for _ in range(10)]
            for host in ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
        }

    served = {host: sum(b" 200 " in head for head in each) for host, each in heads.items()}
    half = BOUNDS.most_streams // 2
    assert (served["127.0.0.1"], served["127.0.0.2"]) == (half, half)
    assert served["127.0.0.3"] >= BOUNDS.most_streams // 3
    assert served["127.0.0.4"] >= BOUNDS.most_streams // 4 - 1


def test_a_stream_that_makes_room_is_the_oldest_of_the_busiest(start, view, tap):
    view.served = [stream(lambda: iter(tap))]
    agent = start(bounds=evolve(BOUNDS, most_streams=4))
    with ExitStack() as stack:
        hosts = [f"127.0.0.{n}" for n in (1, 1, 2, 3, 4)]
        opened = [stack.enter_context(dial(agent, host)) for host in hosts]
        heads = [head_of(raw) for raw in opened]

        assert [head[9:12] for head in heads] == [b"200"] * 5
        assert opened[0].recv(2000) == b"0\r\n\r\n"


def test_clients_with_a_stream_each_make_no_room_for_one_more(start, view, tap):
    view.served = [stream(lambda: iter(tap))]
    agent = start(bounds=evolve(BOUNDS, most_streams=2))
    with ExitStack() as stack:
        heads = [head_of(stack.enter_context(dial(agent, f"127.0.0.{n}"))) for n in range(1, 4)]

    assert [head[9:12] for head in heads] == [b"200", b"200", b"503"]


def dial(agent, host):
    address = agent.server.address
    return socket.create_connection(
        (address.host, address.port), timeout=PATIENCE_S, source_address=(host, 0)
    )


def head_of(raw):
    """Ask for the stream; a connection that made room for a later one has nothing to say."""
    try:
        raw.sendall(ASK)
        return raw.recv(2000)
    except (BrokenPipeError, ConnectionResetError):
        return b""


def test_streams_that_ended_leave_their_room_to_others(start, view):
    view.served = [stream(lambda: iter([b"data: 1\n\n"]))]
    agent = start(bounds=evolve(BOUNDS, most_streams=2))

    for _ in range(20):
        # A busy machine may free the room of the last ones a little after their end.
        wait_until(lambda: agent.tcp.get("/stream").status_code == 200, "room for a stream")


def test_a_client_of_http_1_0_has_its_stream_until_the_end_of_the_connection(start, view):
    view.served = [stream(lambda: iter([b"one", b"two"]), "text/plain")]
    with start().connect() as raw:
        raw.sendall(b"GET /stream HTTP/1.0\r\n\r\n")
        read = read_to_the_end(raw)

    assert read.endswith(b"\r\n\r\nonetwo")


def test_requests_that_are_sent_along_with_a_stream_are_answered_after_it(start, view):
    view.served = [stream(lambda: iter([b"data: 1\n\n"]))]
    with start().connect() as raw:
        raw.sendall(ASK + b"GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        read = read_to_the_end(raw)

    assert read.count(b"HTTP/1.1 200") == 2
    assert b'"alive": true' in read


def test_a_client_of_the_library_reads_a_stream_line_by_line(start, view, tap):
    view.served = [stream(lambda: iter(tap))]
    agent = start()
    tap.pieces.put(b"data: 1\n\n")
    url = f"http://{agent.server.address}/stream"
    with httpx2.stream("GET", url, timeout=PATIENCE_S) as response:
        lines = response.iter_lines()
        found = next(line for line in lines if line.startswith("data"))

    assert found == "data: 1"
    assert tap.closed.wait(PATIENCE_S)


class Shop:
    """A plugin; it is called through a real host."""

    @hookimpl
    def temper_exporters(self):
        return []


def test_a_plugin_whose_streams_fail_three_times_in_a_row_has_no_more_of_them(start, view):
    host = PluginHost()
    host.add(Shop(), "shop")
    view.call = host.call
    view.note_end, view.why_lost = host.note_end, host.why_lost
    fine = Endpoint("fine", "GET", "/fine", "Fine.", lambda _: {"fine": True})
    view.served = [stream(raising), ("shop", fine)]
    agent = start()

    for count in range(1, 4):
        with agent.connect() as raw:
            raw.sendall(ASK)
            read_to_the_end(raw)
        wait_for(lambda: host.failures["shop"] == count)  # noqa: B023 - it is waited for here
    response = agent.tcp.get("/stream")

    assert response.status_code == 503
    assert "set aside: RuntimeError: the disk is full" in response.json()["error"]
    assert agent.tcp.get("/fine").json() == {"fine": True}


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_text_of_an_event_forges_no_field_and_no_second_event(end):
    forged = f"x{end}{end}event: forged{end}data: y"

    sent = ServerSentEvent(forged, f"kind{end}data: z", f"7{end}data: z").encode().decode()

    lines = re.split("\r\n|\r|\n", sent)
    assert lines[:3] == ["event: kind data: z", "id: 7 data: z", "data: x"]
    assert all(line.startswith("data: ") for line in lines[2:-2])
    assert lines[-2:] == ["", ""]
