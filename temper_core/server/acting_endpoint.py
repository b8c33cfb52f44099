"""The endpoint that says whether a client over TCP can act at all."""

from collections.abc import Mapping
from typing import Any

from temper_core.errors import MachineError
from temper_core.records.endpoints import Endpoint
from temper_core.server.token import Token


def acting_endpoint(token: Token) -> Endpoint:
    """Return ``GET /acting``: whether the agent has a usable *token*, and if not, why."""
    return Endpoint(
        "get-acting",
        "GET",
        "/acting",
        "Whether the agent has a token with which requests over TCP can act.",
        lambda _: _document(token),
    )


def _document(token: Token) -> Mapping[str, Any]:
    path = str(token.path or "")
    try:
        token.tokens()
    except MachineError as error:
        return {"has_token": False, "token_file": path, "why_not": str(error)}
    return {"has_token": True, "token_file": path, "why_not": ""}
