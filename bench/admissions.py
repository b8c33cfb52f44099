"""Admissions over TLS: the overcommit webhook against a server that allows every request.

Both are the same server, pinned to one core and queried alternately over open connections, so
that their ratio holds on a busy machine. Admissions per second come from the CPU time they cost.

python bench/admissions.py [--rounds N] [--calls N]
"""

import argparse
import asyncio
import json
import os
import runpy
import socket
import ssl
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from temper_core import (
    Address,
    BoundedServer,
    Bounds,
    listen_on,
    load_settings,
    tier_of,
)
from temper_plugin_density.overcommit import certificates, material
from temper_plugin_density.overcommit.application import webhook_app
from temper_plugin_density.overcommit.policy import Policy
from temper_plugin_density.overcommit.presenting import present
from temper_plugin_density.overcommit.tallies import Tallies
from temper_serving.tls import server_context

CONNECTIONS = 16
SAMPLED = 6
"""Number of different pods, which differ in containers and requests."""
BARE = b'{"response":{"uid":"1","allowed":true}}'
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
KINDS = ("allows all", "webhook")


def reviews() -> list[bytes]:
    """Return the API server's requests for new pods, which have no status yet."""
    podlists = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "podlists.py"))
    pods = [{**pod, "status": {}} for pod in podlists["make_podlist"](SAMPLED)["items"]]
    for pod in pods:
        pod["spec"]["priority"] = 0
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    requests = [{"uid": "1", "kind": kind, "operation": "CREATE", "object": pod} for pod in pods]
    return [
        json.dumps({"kind": "AdmissionReview", "request": request}).encode() for request in requests
    ]


async def allow(scope: Scope, receive: Receive, send: Send) -> None:
    """Read a request to its end and allow it: an ASGI application."""
    assert scope["type"] == "http"  # noqa: S101 - nothing else is asked here
    while (await receive()).get("more_body"):
        pass
    headers = [(b"content-length", str(len(BARE)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": BARE})


def serve(kind: str) -> None:
    """Serve on a free port until the process is killed. Print port and authority."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    tier = partial(tier_of, mapping=load_settings(None).priority_mapping)
    app: ASGIApp = webhook_app(Policy(tier), Tallies()) if kind == KINDS[1] else allow
    authority, served = _certificates()
    context = server_context()
    present(context, served)
    listening = listen_on(Address("127.0.0.1", 0), "--listen")
    port = listening.getsockname()[1]
    print(json.dumps([port, certificates.written([authority.certificate]).decode()]), flush=True)

    async def run() -> None:
        await BoundedServer(app, Bounds(), context=context).serve([listening])

    asyncio.run(run())


def _certificates() -> tuple[material.Authority, material.Material]:
    key, now = certificates.make_key(), datetime.now(UTC)
    life = certificates.ValidityPeriod(now, now + timedelta(days=1))
    authority = material.Authority(certificates.make_authority(key, life), key)
    return authority, material.signed(authority, material.Terms(frozenset({"127.0.0.1"})), now)


class Served:
    """A server's process, and connections to it."""

    def __init__(self, kind: str) -> None:
        command = [sys.executable, __file__, "--serve", kind]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None  # noqa: S101 - it is a pipe
        port, authority = json.loads(self.process.stdout.readline())
        client = ssl.create_default_context(cadata=authority)
        self.connections = [
            client.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname=name)
            for name in ["127.0.0.1"] * CONNECTIONS
        ]

    def ask(self, calls: int, bodies: list[bytes]) -> tuple[float, float]:
        """Send so many requests. Return the server's CPU seconds and the wall seconds."""
        head = "POST /mutate HTTP/1.1\r\nhost: webhook\r\ncontent-length: {}\r\n\r\n"
        requests = [head.format(len(body)).encode() + body for body in bodies]
        used, began = self._cpu_s(), time.perf_counter()
        for turn in range(calls // CONNECTIONS):
            for connection in self.connections:
                connection.sendall(requests[turn % len(requests)])
            for connection in self.connections:
                _answer(connection)
        return self._cpu_s() - used, time.perf_counter() - began

    def _cpu_s(self) -> float:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) * TICK_S


def _answer(connection: ssl.SSLSocket) -> None:
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.recv(65_536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)
    if not head.startswith(b"HTTP/1.1 200") or b"true" not in body:
        raise RuntimeError(f"it was not allowed: {head!r} {body!r}")


@contextmanager
def running() -> Iterator[dict[str, Served]]:
    """Start both servers, and stop them on exit."""
    servers: dict[str, Served] = {}
    try:
        for kind in KINDS:
            servers[kind] = Served(kind)
        yield servers
    finally:
        for server in servers.values():
            server.process.terminate()
            server.process.wait()


def measure(rounds: int, calls: int) -> dict[str, Any]:
    """Return CPU time per admission, and admissions per second by CPU time and by wall time."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    bodies, spent = reviews(), {kind: list[tuple[float, float]]() for kind in KINDS}
    with running() as servers:
        for round_number in range(rounds + 1):
            for kind, server in servers.items():
                taken = server.ask(calls, bodies)
                if round_number:  # the first round warms up
                    spent[kind].append(taken)
    done = calls // CONNECTIONS * CONNECTIONS
    rows = {kind: _row(taken, done) for kind, taken in spent.items()}
    bare, ours = (rows[kind]["cpu_us"] for kind in KINDS)
    return {
        **rows,
        "ratio": round(ours / bare, 2),
        "bytes": round(statistics.mean(map(len, bodies))),
    }


def _row(taken: list[tuple[float, float]], calls: int) -> dict[str, float]:
    cpu_s = statistics.median(cpu_s for cpu_s, _ in taken) / calls
    wall_s = statistics.median(wall_s for _, wall_s in taken) / calls
    return {
        "cpu_us": round(cpu_s * 1e6),
        "per_core_s": round(1 / cpu_s),
        "per_s_by_the_clock": round(1 / wall_s),
    }


def main() -> None:
    """Measure, or run one of the measured servers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--serve", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
    else:
        print(json.dumps(measure(options.rounds, options.calls), indent=1))


if __name__ == "__main__":
    main()
