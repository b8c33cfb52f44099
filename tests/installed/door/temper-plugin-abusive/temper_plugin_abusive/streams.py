"""Streams that flood, hang, raise, and yield what is no bytes."""

import threading

from temper_core import Answer, Endpoint, Instrument, OpenInstrument, hookimpl


def flood():
    while True:
        yield b"x" * 1024


def hang():
    yield b"first\n"
    threading.Event().wait()


def fail():
    yield b"first\n"
    raise RuntimeError("the stream is broken")


def no_bytes():
    yield b"first\n"
    yield "text"


def huge_piece():
    yield b"first\n"
    yield b"x" * 20_000_000


class Streams(OpenInstrument):
    def __init__(self, context):
        del context

    def endpoints(self):
        for stream in (flood, hang, fail, no_bytes, huge_piece):
            name = stream.__name__.replace("_", "-")
            answer = lambda _, stream=stream: Answer(media_type="text/plain", stream=stream())  # noqa: E731
            yield Endpoint(f"abuse-{name}", "GET", f"/abuse/stream/{name}", "Abuse.", answer)


@hookimpl
def temper_instruments():
    return [Instrument("abusive-streams", Streams)]
