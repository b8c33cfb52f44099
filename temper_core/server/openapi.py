"""The OpenAPI 3.1 document of everything in the table that also routes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from temper_core import __version__
from temper_core.safe_mode.model import LONGEST_REASON, REQUESTER_PATTERN
from temper_core.server.table import Served, Table, parameters_in

TEXT_PATHS = ("/", "/metrics")
ERROR = {
    "description": "What went wrong, in one line.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_COMPONENTS = {
    "schemas": {
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": {"error": {"type": "string"}},
        },
        "SafeModeRequest": {
            "type": "object",
            "required": ["requested"],
            "additionalProperties": False,
            "properties": {
                "requested": {"type": "boolean"},
                "requester": {"type": "string", "pattern": f"^{REQUESTER_PATTERN}$"},
                "reason": {"type": "string", "maxLength": LONGEST_REASON},
            },
        },
        "WakesRequest": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "seconds": {"type": "number", "minimum": 1, "maximum": 3600, "default": 60},
            },
        },
    },
    "securitySchemes": {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "The token of [server] token_file; the local socket needs none.",
        }
    },
}
_BODIES = {
    "/safe-mode": {"$ref": "#/components/schemas/SafeModeRequest"},
    "/wakes": {"$ref": "#/components/schemas/WakesRequest"},
}


def openapi_document(table: Table) -> Mapping[str, Any]:
    """Describe every endpoint of *table*, plugins' included."""
    operations = _operation_ids(table)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Temper agent", "version": __version__},
        "paths": {
            path: {
                method.lower(): _operation(path, served, operations[path, method])
                for method, served in methods.items()
            }
            for path, methods in table.items()
        },
        "components": _COMPONENTS,
    }


def _operation_ids(table: Table) -> Mapping[tuple[str, str], str]:
    """Name every operation; a plugin's that is named like another carries its plugin's name."""
    every = [(path, method, s) for path, methods in table.items() for method, s in methods.items()]
    names = Counter(served.endpoint.name for _, _, served in every)
    return {
        (path, method): _camel_case(
            f"{served.plugin}-{served.endpoint.name}"
            if served.plugin and names[served.endpoint.name] > 1
            else served.endpoint.name
        )
        for path, method, served in every
    }


def _camel_case(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.replace("_", "-").split("-"))


def _operation(path: str, served: Served, operation: str) -> dict[str, Any]:
    media_type = "text/plain" if path in TEXT_PATHS else "application/json"
    described: dict[str, Any] = {
        "operationId": operation,
        "summary": served.endpoint.summary,
        "tags": [served.plugin or "core"],
        "responses": {
            "200": {"description": "As the summary says.", "content": {media_type: {}}},
            "default": ERROR,
        },
    }
    parameters = list(_parameters(served))
    if parameters:
        described["parameters"] = parameters
    if served.endpoint.acts:
        described["security"] = [{"token": []}]
    if served.endpoint.method != "GET":
        schema = {} if served.plugin else _BODIES.get(path, {})
        described["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return described


def _parameters(served: Served) -> Iterator[dict[str, Any]]:
    described = served.endpoint.parameters
    in_path = parameters_in(served.endpoint.path)
    for name in in_path:
        yield _parameter(name, described.get(name, ""), "path") | {"required": True}
    for name, meaning in described.items():
        if name not in in_path:
            yield _parameter(name, meaning, "query")


def _parameter(name: str, meaning: str, place: str) -> dict[str, Any]:
    return {"name": name, "in": place, "description": meaning, "schema": {"type": "string"}}
