"""The OpenAPI 3.1 document, made from the table that routes the requests."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from temper_core import __version__
from temper_core.plain_json import plain_value
from temper_core.server.table import ServedEndpoint, Table, parameters_in, plain_path

ERROR = {
    "description": "The error, in one line.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}},
}
_SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "The token of [server] token_file; the local socket needs none.",
    }
}
_WITH_BODY = ("PATCH", "POST", "PUT")


def openapi_document(table: Table) -> Mapping[str, Any]:
    """Describe every endpoint of *table*, including those of plugins."""
    operations = _operation_ids(table)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Temper agent", "version": __version__},
        "paths": {
            plain_path(path): {
                method.lower(): _operation(served, operations[path, method])
                for method, served in methods.items()
            }
            for path, methods in table.items()
        },
        "components": {
            "schemas": {"Error": _ERROR_SCHEMA, **_titled_schemas(table)},
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


def _titled_schemas(table: Table) -> Mapping[str, Any]:
    """Return the core's body schemas that have a title, by title."""
    every = [served for methods in table.values() for served in methods.values()]
    schemas = [served.endpoint.body_schema for served in every if not served.plugin]
    return {schema["title"]: dict(schema) for schema in schemas if "title" in schema}


def _operation_ids(table: Table) -> Mapping[tuple[str, str], str]:
    """Name every operation. An ambiguous name of a plugin gets the plugin's name as a prefix."""
    every = [(path, method, s) for path, methods in table.items() for method, s in methods.items()]
    names = Counter(served.endpoint.name for _, _, served in every)
    wholes = Counter((served.plugin, served.endpoint.name) for _, _, served in every)
    return {
        (path, method): _camel_case(_operation_name(path, method, served, names, wholes))
        for path, method, served in every
    }


def _operation_name(
    path: str,
    method: str,
    served: ServedEndpoint,
    names: Mapping[str, int],
    wholes: Mapping[tuple[str, str], int],
) -> str:
    name = served.endpoint.name
    if not served.plugin or names[name] == 1:
        return name
    if wholes[served.plugin, name] == 1:
        return f"{served.plugin}-{name}"
    place = re.sub("[^a-z0-9]+", "-", f"{method}{path}".lower())
    return f"{served.plugin}-{name}-{place}"


def _camel_case(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.replace("_", "-").split("-"))


def _operation(served: ServedEndpoint, operation: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation,
        "summary": served.endpoint.summary,
        "tags": [served.plugin or "core"],
        "responses": {
            "200": {
                "description": "As the summary says.",
                "content": {served.endpoint.media_type: {}},
            },
            "default": ERROR,
        },
    }
    parameters = list(_parameters(served))
    if parameters:
        described["parameters"] = parameters
    if served.endpoint.acts:
        described["security"] = [{"token": []}]
    if served.endpoint.method in _WITH_BODY or served.endpoint.body_schema:
        schema = _body_schema(served)
        described["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return described


def _body_schema(served: ServedEndpoint) -> Any:  # noqa: ANN401 - JSON
    schema = served.endpoint.body_schema
    if not served.plugin and "title" in schema:
        return {"$ref": f"#/components/schemas/{schema['title']}"}
    return plain_value(schema)


def _parameters(served: ServedEndpoint) -> Iterator[dict[str, Any]]:
    described = served.endpoint.parameters
    in_path = parameters_in(served.endpoint.path)
    for name in in_path:
        yield _parameter(name, described.get(name, ""), "path") | {"required": True}
    for name, meaning in described.items():
        if name not in in_path:
            yield _parameter(name, meaning, "query")


def _parameter(name: str, meaning: str, place: str) -> dict[str, Any]:
    return {"name": name, "in": place, "description": meaning, "schema": {"type": "string"}}
