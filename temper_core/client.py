"""Asks the agent of this node, over its local socket or over TCP."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from temper_core.errors import DocumentError, InputError, MachineError
from temper_core.server.address import parse_address

if TYPE_CHECKING:
    import httpx

    from temper_core.settings import Settings
    from temper_core.settings.models import ServerSettings

TIMEOUT_S = 15.0
LARGEST_TOKEN_BYTES = 4096
FIRST_ERROR = 400
FIRST_SERVER_ERROR = 500

Method = Literal["GET", "PUT", "POST"]

_ERRNO = re.compile(r"^\[Errno \d+\] ")


class NoAgentError(MachineError):
    """No agent answers where the settings say that one listens."""


def ask_agent(
    path: str,
    query: Mapping[str, str] | None = None,
    *,
    method: Method = "GET",
    body: object = None,
    settings: "Settings | None" = None,
) -> Any:  # noqa: ANN401 - JSON may say anything
    """Ask the agent for *path* and return what it says: parsed JSON, or text such as metrics.

    The local socket is tried first, then the address of ``[server] listen``; without *settings*
    those of the default file. Raises InputError where the agent refuses the request, MachineError
    where it cannot do it, NoAgentError (a MachineError) where no agent answers.
    """
    import httpx  # noqa: PLC0415 - slow

    server = (settings or _default_settings()).server
    failures: list[str] = []
    for where, transport, base in _ways(server):
        headers = _credentials(server) if method != "GET" and where != server.socket else {}
        try:
            with httpx.Client(
                transport=transport, base_url=base, timeout=TIMEOUT_S, trust_env=False
            ) as client:
                response = client.request(method, path, params=query, json=body, headers=headers)
        except (httpx.HTTPError, OSError) as error:
            failures.append(f"{where} ({_why(error)})")
            continue
        if response.headers.get("server", "").startswith("temper/"):
            return _said(response)
        failures.append(f"{where} (another program answers there)")
    raise NoAgentError(
        f"no agent answers at {' or '.join(failures) or 'any address: none is set'}; start one "
        "with 'temper agent', or name its settings with --settings"
    )


def _default_settings() -> "Settings":
    from temper_core.settings import load  # noqa: PLC0415 - only where none are given

    return load(None).settings


def _ways(server: "ServerSettings") -> Iterator[tuple[str, "httpx.HTTPTransport", str]]:
    """Yield each way to the agent: its name, the transport and the base URL."""
    import httpx  # noqa: PLC0415 - slow

    if server.socket:
        yield server.socket, httpx.HTTPTransport(uds=server.socket), "http://agent"
    if server.listen:
        address = parse_address(server.listen).reachable
        yield str(address), httpx.HTTPTransport(), f"http://{address}"


def _credentials(server: "ServerSettings") -> dict[str, str]:
    """Return the token that acting over TCP needs, as far as the caller may read it."""
    if not server.token_file:
        return {}
    try:
        with Path(server.token_file).open("rb") as file:
            token = file.read(LARGEST_TOKEN_BYTES).strip().decode("ascii")
    except (OSError, UnicodeDecodeError):
        # The agent says what is missing, and better.
        return {}
    return {"authorization": f"Bearer {token}"}


def _why(error: Exception) -> str:
    import httpx  # noqa: PLC0415 - slow

    if isinstance(error, httpx.TimeoutException):
        return f"no answer within {TIMEOUT_S:.0f} s"
    return _ERRNO.sub("", str(error)) or type(error).__name__


def _said(response: "httpx.Response") -> Any:  # noqa: ANN401 - JSON may say anything
    is_json = response.headers.get("content-type", "").startswith("application/json")
    if response.status_code < FIRST_ERROR:
        return _parsed(response) if is_json else response.text
    message = _error_in(response, is_json=is_json)
    if response.status_code < FIRST_SERVER_ERROR:
        raise InputError(message)
    raise MachineError(message)


def _error_in(response: "httpx.Response", *, is_json: bool) -> str:
    said = _parsed(response) if is_json else None
    if isinstance(said, dict) and isinstance(said.get("error"), str):
        return f"the agent says: {said['error']}"
    return f"the agent answers {response.request.url.path} with status {response.status_code}"


def _parsed(response: "httpx.Response") -> Any:  # noqa: ANN401 - JSON may say anything
    from temper_core.documents import parse_json  # noqa: PLC0415 - with the answer only

    try:
        return parse_json(response.text, source="the agent's answer")
    except DocumentError as error:
        raise MachineError(str(error)) from error
