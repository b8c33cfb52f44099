"""Queries to a Prometheus, Thanos or Mimir: bounded in time and size, and without redirects."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

import httpx2

from temper_core import InputError, MachineError
from temper_prometheus.access import Access
from temper_prometheus.answers import Answer, error_in, parse
from temper_prometheus.durations import as_duration

TIMEOUT_S = 120.0
"""Of one query as a whole: a Prometheus ends its own by then (``--query.timeout``)."""
LARGEST_ANSWER_BYTES = 64 << 20
MOST_VALUES = 10_000_000
"""Of an answer in JSON. Each takes some 50 bytes once it is parsed, however few its text has."""
LONGEST_ERROR = 300
REDIRECTS = range(300, 400)
FIRST_ERROR = 400
FIRST_SERVER_ERROR = 500
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, UNPROCESSABLE = 401, 403, 404, 422
_REMEDIES = {
    UNAUTHORIZED: "; give a token with --prometheus-token-file",
    FORBIDDEN: "; the token may not ask it",
    NOT_FOUND: "; the address needs the prefix of its API, such as /prometheus",
}


class Prometheus:
    """A Prometheus that is asked one query at a time. Use it as a context manager.

    Every query raises InputError if the server refuses it (4xx or a redirect), and MachineError if
    no usable answer comes within *timeout_s* seconds, *largest_bytes* and *most_values*. *smaller*
    tells a user how to make a question smaller. *notice* is called before each query with its
    number.
    """

    def __init__(
        self,
        access: Access,
        *,
        timeout_s: float = TIMEOUT_S,
        largest_bytes: int = LARGEST_ANSWER_BYTES,
        most_values: int = MOST_VALUES,
        smaller: str = "a smaller question may be answered",
        notice: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._access = access
        self._remedies = {**_REMEDIES, UNPROCESSABLE: f"; {smaller}"}
        self._timeout_s = timeout_s
        self._largest_bytes = largest_bytes
        self._most_values = most_values
        self._notice = notice
        self._runner = asyncio.Runner()
        self._client: httpx2.AsyncClient | None = None
        self.asked = 0
        self.warnings: dict[str, None] = {}

    def __enter__(self) -> Self:
        """Prepare connections, without the proxies and passwords of the environment.

        Answers come uncompressed, so that a small one cannot become large. Compressing takes a
        Prometheus longer than the query.
        """
        self._runner.__enter__()
        self._client = httpx2.AsyncClient(
            headers={**self._access.headers, "Accept-Encoding": "identity"},
            verify=self._access.tls or self._access.url.startswith("https:"),
            timeout=self._timeout_s,
            trust_env=False,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        if self._client is not None:
            with suppress(httpx2.HTTPError, OSError):
                self._runner.run(self._client.aclose())
        self._runner.__exit__(kind, error, trace)

    def at(self, query: str, moment: int) -> Answer:
        """Return the value of each series of *query* at *moment*, in seconds."""
        return self._answer("query", {"query": query, "time": str(moment)}, "vector")

    def over(self, query: str, begin: int, end: int, step_s: int) -> Answer:
        """Return the values of each series at *begin*, each *step_s* seconds on, up to *end*."""
        window = {"start": str(begin), "end": str(end), "step": as_duration(step_s)}
        return self._answer("query_range", {"query": query, **window}, "matrix")

    def damaged(self, error: ValueError) -> MachineError:
        """Return the error for an answer that is damaged in the way of *error*."""
        return self._failed(f"does not answer as a Prometheus does: {_short(error)}")

    def _answer(self, endpoint: str, form: Mapping[str, str], kind: str) -> Answer:
        self.asked += 1
        self._notice(self.asked)
        content = self._runner.run(self._content(f"{self._access.url}/api/v1/{endpoint}", form))
        if values_at_most(content) > self._most_values:
            size = f"more than {self._most_values} values"
            raise self._failed(f"answers with {size}{self._remedies[UNPROCESSABLE]}")
        try:
            answer = parse(content, kind)
        except ValueError as error:
            raise self.damaged(error) from error
        self.warnings.update(dict.fromkeys(answer.warnings))
        return answer

    async def _content(self, url: str, form: Mapping[str, str]) -> bytes:
        """Return the body of the answer. The time limit covers its head, too."""
        assert self._client is not None  # noqa: S101 - for the type checker: inside the context
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._client.stream("POST", url, data=form) as response,
            ):
                content = await self._bounded(response)
                self._judge(response.status_code, content)
                return content
        except (TimeoutError, httpx2.TimeoutException) as error:
            problem = f"does not answer within {self._timeout_s:.0f} s"
            raise self._failed(f"{problem}{self._remedies[UNPROCESSABLE]}") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise self._failed(f"cannot be asked: {_short(error)}") from error

    async def _bounded(self, response: httpx2.Response) -> bytes:
        content = bytearray()
        async for piece in response.aiter_raw():
            content += piece
            if len(content) > self._largest_bytes:
                size = f"more than {self._largest_bytes >> 20} MiB"
                raise self._failed(f"answers with {size}{self._remedies[UNPROCESSABLE]}")
        return bytes(content)

    def _judge(self, status: int, content: bytes) -> None:
        """Raise an error for a *status* that is no success."""
        if status in REDIRECTS:
            raise InputError(f"{self._name}: answers with a redirect, which is not followed")
        if status < FIRST_ERROR:
            return
        told = error_in(content)
        why = f"{status}{f' ({_short(told)})' if told else ''}{self._remedies.get(status, '')}"
        if status < FIRST_SERVER_ERROR:
            raise InputError(f"{self._name}: refuses with status {why}")
        raise self._failed(f"fails with status {why}")

    def _failed(self, problem: str) -> MachineError:
        return MachineError(f"{self._name}: {problem}")

    @property
    def _name(self) -> str:
        return f"Prometheus at {self._access.url}"


def values_at_most(content: bytes) -> int:
    """Return how many values the JSON *content* has at most, by the signs that precede them."""
    return sum(content.count(sign) for sign in (b"[", b"{", b",")) + 1


def _short(error: object) -> str:
    text = str(error) or type(error).__name__
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}..."
