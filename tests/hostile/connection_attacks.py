"""Attacks on the connections of an HTTP server. Run as a program: ``NAME HOST:PORT``.

To add an attack, write a coroutine function that takes a Target and decorate it with ``attack``.
It runs in a process of its own until it is killed.
"""

import asyncio
import random
import resource
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress

from attrs import field, frozen

Attack = Callable[["Target"], Awaitable[None]]
ATTACKS: dict[str, Attack] = {}
PLACES = 64
"""The connections over TCP that an agent serves at a time."""
SOURCES = tuple(f"127.0.0.{n}" for n in range(2, 10))
HEAD = b"GET %s HTTP/1.1\r\nhost: a\r\n\r\n"
BODY = b"PUT /safe-mode HTTP/1.1\r\nhost: a\r\ncontent-length: 60000\r\n\r\n"


@frozen
class Target:
    """The attacked server. The connections of an attack come from *sources* in turn."""

    host: str
    port: int
    sources: tuple[str, ...] = ("127.0.0.1",)
    _turn: list[int] = field(factory=lambda: [0])

    async def connect(self, **options):
        """Connect from the next source."""
        self._turn[0] += 1
        source = self.sources[self._turn[0] % len(self.sources)]
        return await asyncio.open_connection(
            self.host, self.port, local_addr=(source, 0), **options
        )


def attack(function: Attack) -> Attack:
    """Add *function* to the table."""
    ATTACKS[function.__name__] = function
    return function


async def over_and_over(target: Target, once: Attack, connections: int = PLACES) -> None:
    """Run *once* on each of *connections* connections at a time. A closed one is replaced."""

    async def keep_one() -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                await once(target)
            await asyncio.sleep(0.005)

    await asyncio.gather(*(keep_one() for _ in range(connections)))


def queueing(path: bytes, length: int = 200) -> Attack:
    """Return a function that has *length* requests for *path* queued on its connection."""

    async def once(target: Target) -> None:
        reader, writer = await target.connect()
        try:
            while True:
                writer.write(HEAD % path * length)
                await writer.drain()
                for _ in range(length):
                    head = await reader.readuntil(b"\r\n\r\n")
                    size = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
                    await reader.readexactly(int(size))
        finally:
            writer.close()

    return once


def saying(said: bytes, drips: bytes = b"", every_s: float = 0.5, **options) -> Attack:
    """Return a function that sends *said*, then *drips* byte by byte, and reads nothing."""

    async def once(target: Target) -> None:
        _, writer = await target.connect(**options)
        try:
            writer.write(said)
            for byte in drips or b"-" * 1000:
                await asyncio.sleep(every_s)
                if drips:
                    writer.write(bytes([byte]))
                if writer.transport.is_closing():
                    return
        finally:
            writer.transport.abort()

    return once


@attack
async def queued_requests(target):
    await over_and_over(target, queueing(b"/observe"))


@attack
async def queued_requests_on_many_connections(target):
    await over_and_over(target, queueing(b"/safe-mode"), 200)


@attack
async def queued_scrapes(target):
    await over_and_over(target, queueing(b"/metrics"))


@attack
async def queued_probes(target):
    await over_and_over(target, queueing(b"/healthz"), 200)


@attack
async def one_request_a_connection(target):
    async def once(target):
        reader, writer = await target.connect()
        writer.write(HEAD % b"/healthz")
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    await over_and_over(target, once, 100)


@attack
async def slow_headers(target):
    await over_and_over(target, saying(b"GET /observe HTTP/1.1\r\nx: ", b"x" * 1000), 300)


@attack
async def slow_bodies(target):
    await over_and_over(target, saying(BODY, b" " * 1000), 300)


@attack
async def slow_readers(target):
    await over_and_over(target, saying(HEAD % b"/observe?top=5000" * 200, limit=1024), 200)


@attack
async def half_open(target):
    async def once(target):
        _, writer = await target.connect()
        writer.write_eof()
        await asyncio.sleep(30)

    await over_and_over(target, once, 300)


@attack
async def silent_connections(target):
    await over_and_over(target, saying(b""), 500)


@attack
async def many_connects_per_second(target):
    async def once(target):
        with socket.socket() as raw:
            raw.setblocking(False)
            raw.bind((random.choice(target.sources), 0))
            await asyncio.get_running_loop().sock_connect(raw, (target.host, target.port))

    await over_and_over(target, once, 50)


@attack
async def streams(target):
    async def once(target):
        reader, writer = await target.connect()
        writer.write(HEAD % b"/events/stream")
        while await reader.read(4096):
            pass
        writer.close()

    await over_and_over(target, once, 100)


@attack
async def large_heads(target):
    async def once(target):
        reader, writer = await target.connect()
        writer.write(b"GET / HTTP/1.1\r\nx: " + b"x" * 200_000)
        await reader.read()
        writer.close()

    await over_and_over(target, once, 100)


async def everything(target):
    """Run all attacks at once, each with fewer connections than alone."""
    await asyncio.gather(*(each(target) for name, each in ATTACKS.items() if name != "everything"))


ATTACKS["everything"] = everything


def main(name: str, address: str, *sources: str) -> None:
    """Attack *address*."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    host, _, port = address.rpartition(":")
    target = Target(host, int(port), sources or ("127.0.0.1",))
    asyncio.run(ATTACKS[name](target))


if __name__ == "__main__":
    main(*sys.argv[1:])
