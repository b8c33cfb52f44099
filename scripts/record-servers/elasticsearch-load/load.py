# noqa: INP001 - a program that a script runs by its path
"""Writes products in bulk, searches and fetches them, and merges segments, until it is stopped."""

import json
import os
import time
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPConnection
from random import SystemRandom

PRODUCTS = 20_000
PER_BULK = 200
SETTINGS = {"number_of_shards": 2, "number_of_replicas": 0, "refresh_interval": "500ms"}

random = SystemRandom()
WORDS = [f"word{number}" for number in range(2_000)]


def _connected() -> HTTPConnection:
    return HTTPConnection("127.0.0.1", 9200)


def _ask(to: HTTPConnection, method: str, path: str, *lines: object) -> None:
    kind = "application/x-ndjson" if path.endswith("_bulk") else "application/json"
    to.request(method, path, "".join(json.dumps(x) + "\n" for x in lines), {"Content-Type": kind})
    answer = to.getresponse()
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise SystemExit(answer.read())
    answer.read()


def _words(count: int) -> str:
    return " ".join(random.choices(WORDS, k=count))


def _write(to: HTTPConnection) -> None:
    lines: list[object] = []
    for number in random.sample(range(PRODUCTS), PER_BULK):
        lines.append({"index": {"_id": str(number)}})
        lines.append({"text": _words(40), "costs": random.randrange(1000), "kind": _words(1)})
    _ask(to, "POST", "/shop/_bulk", *lines)
    time.sleep(0.1)


def _search(to: HTTPConnection) -> None:
    query = {
        "query": {"match": {"text": _words(3)}},
        "sort": ["_score", {"costs": "desc"}],
        "aggs": {"costs": {"histogram": {"field": "costs", "interval": 50}}},
    }
    _ask(to, "POST", "/shop/_search", query)
    found = {"query": {"ids": {"values": [str(random.randrange(PRODUCTS))]}}}
    _ask(to, "POST", "/shop/_search", found)


def _merge(to: HTTPConnection) -> None:
    time.sleep(5)
    _ask(to, "POST", "/shop/_forcemerge?max_num_segments=1")


def _repeat(work: Callable[[HTTPConnection], None]) -> None:
    to = _connected()
    while True:
        work(to)


_ask(_connected(), "PUT", "/shop", {"settings": SETTINGS})
for part in (_search, _search, _merge):
    if not os.fork():
        _repeat(part)
_repeat(_write)
