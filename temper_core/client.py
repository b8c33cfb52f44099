"""Requests to the agent of this node, over its local socket or over TCP."""

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import frozen

from temper_core.errors import DocumentError, InputError, MachineError
from temper_core.http.listener_owners import listener_owners
from temper_core.http.time_limit import TimeLimit
from temper_core.server.token_file import read_tokens

if TYPE_CHECKING:
    import httpx2

    from temper_core.settings import Settings
    from temper_core.settings.models import ServerSettings

TIMEOUT_S = 15.0
WHOLE_ANSWER_S = 30.0
LARGEST_ANSWER_BYTES = 64 << 20
"""An observation of 32,768 threads has 20 MB. Parsed JSON takes up to 25 times its size."""
LONGEST_LINE_BYTES = 1 << 20
FIRST_ERROR = 400
FIRST_SERVER_ERROR = 500
ROOT = 0

Method = Literal["GET", "PUT", "POST", "PATCH", "DELETE"]

_ERRNO = re.compile(r"^\[Errno \d+\] ")


class NoAgentError(MachineError):
    """No agent answers at the addresses of the settings."""


def ask_agent(  # noqa: PLR0913 - one for each part of a request
    path: str,
    query: Mapping[str, str] | None = None,
    *,
    method: Method = "GET",
    body: object = None,
    settings: "Settings | None" = None,
    largest_bytes: int | None = None,
    is_trusted: bool = False,
    before_tcp: Callable[[], None] | None = None,
) -> Any:  # noqa: ANN401 - any JSON
    """Request *path* from the agent and return its answer: parsed JSON, or text such as metrics.

    The local socket is tried first, then the address of ``[server] listen``. A request that acts
    goes over TCP only to a listener of root, of this user or of the token file's owner, with the
    token if it is readable. So does one whose answer *is_trusted*. *settings* defaults to those of
    the default file. An answer of more than *largest_bytes* (64 MiB by default) counts as none.
    *before_tcp* is called if the request goes over TCP.

    Raises InputError if the agent refuses the request, MachineError if it fails on it, NoAgentError
    (a MachineError) if no agent answers. A refusal over TCP is a MachineError if a request that
    acts was sent to the local socket before, whose agent may have carried it out.
    """
    import httpx2  # noqa: PLC0415 - slow

    server = (settings or _default_settings()).server
    failures: list[str] = []
    is_sent = False
    for way in _ways(server):
        if before_tcp is not None and not way.socket:
            before_tcp()
        try:
            headers = dict[str, str]()
            if not way.socket and (method != "GET" or is_trusted):
                headers = _credentials(server)
            with way.client() as client:
                request = client.build_request(
                    method, path, params=query, json=body, headers=headers
                )
                is_repeated, is_sent = is_sent, method != "GET"
                response = _answer(client, request, largest_bytes or LARGEST_ANSWER_BYTES)
        except (httpx2.HTTPError, OSError) as error:
            failures.append(f"{way.name} ({_why(error)})")
            continue
        if response is not None:
            return _said_again(response, failures) if is_repeated else _said(response)
        failures.append(f"{way.name} (another program answers there)")
    raise _no_agent(failures)


def stream_agent(
    path: str, query: Mapping[str, str] | None = None, *, settings: "Settings | None" = None
) -> Iterator[str]:
    """Yield the lines of a streamed answer as they come, until it ends.

    Raises as ``ask_agent`` does, and MachineError if the stream breaks off.
    """
    server = (settings or _default_settings()).server
    failures: list[str] = []
    for way in _ways(server):
        with ExitStack() as ending:
            try:
                response = ending.enter_context(_begun(way, path, query))
            except OSError as error:
                failures.append(f"{way.name} ({_why(error)})")
                continue
            yield from _streamed(response)
            return
    raise _no_agent(failures)


@contextmanager
def _begun(way: "_Way", path: str, query: Mapping[str, str] | None) -> "Iterator[httpx2.Response]":
    """Return the head of an agent's answer. Raise OSError if none comes."""
    import httpx2  # noqa: PLC0415 - slow

    with way.client() as client:
        request = client.build_request("GET", path, params=query)
        try:
            with TimeLimit(request, WHOLE_ANSWER_S):
                response = client.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise OSError(_why(error)) from error
        with closing(response):
            if not response.headers.get("server", "").startswith("temper/"):
                raise OSError("another program answers there")
            yield response


def _streamed(response: "httpx2.Response") -> Iterator[str]:
    import httpx2  # noqa: PLC0415 - slow

    try:
        if response.status_code >= FIRST_ERROR:
            response.read()
            _said(response)
        yield from _lines(response.iter_raw())
    except (httpx2.HTTPError, OSError) as error:
        raise MachineError(f"the agent's stream broke off: {_why(error)}") from error


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    """Yield whole lines. Raise OSError for one over ``LONGEST_LINE_BYTES``."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
        if len(rest) > LONGEST_LINE_BYTES:
            raise OSError(f"a line of more than {LONGEST_LINE_BYTES >> 10} KiB")


def _no_agent(failures: Sequence[str]) -> NoAgentError:
    return NoAgentError(
        f"no agent answers at {' or '.join(failures) or 'any address: none is set'}; start one "
        "with 'temper agent', or name its settings with --settings"
    )


def ask_observation(settings: "Settings", top: int | None = None) -> Mapping[str, Any]:
    """Request ``/observe`` with the *top* busiest threads. Raise as ``ask_agent``."""
    query = {} if top is None else {"top": str(top)}
    document = ask_agent("/observe", query, settings=settings)
    if not isinstance(document, dict):
        raise MachineError("the agent's answer to /observe is not an observation")
    return document


@frozen
class _Way:
    """One address of the agent. ``socket`` is empty for TCP."""

    name: str
    base_url: str
    socket: str = ""

    def client(self) -> "httpx2.Client":
        """Make the client. Raise OSError if no process listens on the socket."""
        import ssl  # noqa: PLC0415 - slow

        import httpx2  # noqa: PLC0415 - slow

        if self.socket:
            _knock(self.socket)
        # No address uses TLS. An empty context avoids loading the system's certificates.
        unused = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        transport = httpx2.HTTPTransport(uds=self.socket or None, verify=unused)
        return httpx2.Client(
            transport=transport, base_url=self.base_url, timeout=TIMEOUT_S, trust_env=False
        )


def _knock(path: str) -> None:
    """Connect once: httpx2 leaks the socket of a connect that fails."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(TIMEOUT_S)
        probe.connect(path)


def _default_settings() -> "Settings":
    from temper_core.settings import load  # noqa: PLC0415 - only where none are given

    return load(None).settings


def _ways(server: "ServerSettings") -> Iterator[_Way]:
    if server.socket:
        yield _Way(server.socket, "http://agent", server.socket)
    if server.address:
        reachable = server.address.reachable
        yield _Way(str(reachable), f"http://{reachable}")


def _credentials(server: "ServerSettings") -> dict[str, str]:
    """Return the header with the token for a trusted listener on TCP, empty without a token.

    Raises OSError if another user's process may listen on the address.
    """
    token, owner = "", None
    if server.token_file:
        path = Path(server.token_file)
        with suppress(OSError):
            owner = path.stat().st_uid
        # Without the token the agent's own error describes best what is missing.
        with suppress(OSError, MachineError, UnicodeDecodeError):
            token = read_tokens(path)[0].secret.decode("ascii")
    _require_trusted_listener(server, owner)
    return {"authorization": f"Bearer {token}"} if token else {}


def _require_trusted_listener(server: "ServerSettings", token_owner: int | None) -> None:
    """Raise OSError unless all listeners on the port are of root, this user or *token_owner*."""
    address = server.address.reachable if server.address else None
    owners = listener_owners(address.port, address.host) if address else frozenset()
    if not owners:
        raise OSError("no process of this network namespace listens there")
    others = sorted(owners - {ROOT, os.geteuid(), token_owner})
    if others:
        trusted = ["root", "this user"]
        if token_owner is not None:
            trusted.append(f"the owner of {server.token_file}")
        raise OSError(
            f"user {others[0]} listens there, who is none of those trusted: {', '.join(trusted)}"
        )


def _why(error: Exception) -> str:
    import httpx2  # noqa: PLC0415 - slow

    if isinstance(error, httpx2.TimeoutException):
        return f"no answer within {TIMEOUT_S:.0f} s"
    return _ERRNO.sub("", str(error)) or type(error).__name__


def _answer(
    client: "httpx2.Client", request: "httpx2.Request", largest_bytes: int
) -> "httpx2.Response | None":
    """Return the agent's whole answer. Return None if the head is of another program.

    Raises OSError or httpx2.HTTPError if the answer does not come, or is too large.
    """
    import httpx2  # noqa: PLC0415 - slow

    pieces, size = list[bytes](), 0
    with TimeLimit(request, WHOLE_ANSWER_S), closing(client.send(request, stream=True)) as response:
        if not response.headers.get("server", "").startswith("temper/"):
            return None
        for piece in response.iter_raw():
            pieces.append(piece)
            size += len(piece)
            if size > largest_bytes:
                raise OSError(f"an answer of more than {largest_bytes >> 20} MiB")
    return httpx2.Response(
        response.status_code, headers=response.headers, content=b"".join(pieces), request=request
    )


def _said(response: "httpx2.Response") -> Any:  # noqa: ANN401 - any JSON
    is_json = response.headers.get("content-type", "").startswith("application/json")
    if response.status_code < FIRST_ERROR:
        return _parsed(response) if is_json else response.text
    message = _error_in(response, is_json=is_json)
    if response.status_code < FIRST_SERVER_ERROR:
        raise InputError(message)
    raise MachineError(message)


def _said_again(response: "httpx2.Response", failures: Sequence[str]) -> Any:  # noqa: ANN401 - JSON
    """Return the answer to a request that an agent may have carried out already."""
    try:
        return _said(response)
    except InputError as error:
        raise MachineError(
            f"{' or '.join(failures)} may have carried it out; over TCP {error}"
        ) from error


def _error_in(response: "httpx2.Response", *, is_json: bool) -> str:
    document = _parsed(response) if is_json else None
    if isinstance(document, dict) and isinstance(document.get("error"), str):
        return f"the agent answers: {document['error']}"
    return f"the agent answers {response.request.url.path} with status {response.status_code}"


def _parsed(response: "httpx2.Response") -> Any:  # noqa: ANN401 - any JSON
    from temper_core.documents import parse_json  # noqa: PLC0415 - with the answer only

    try:
        return parse_json(response.text, source="the agent's answer")
    except DocumentError as error:
        raise MachineError(str(error)) from error
