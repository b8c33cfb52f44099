"""The endpoints that describe the table: a plain list, and the OpenAPI document.

The list is also at ``/`` unless a plugin claims that path.
"""

from collections.abc import Callable

from temper_core import __version__
from temper_core.records.endpoints import Answer, Endpoint, Request
from temper_core.server.answers import json_answer
from temper_core.server.openapi import openapi_document
from temper_core.server.table import Table

TEXT = "text/plain; charset=utf-8"


def describing(table: Callable[[], Table]) -> tuple[Endpoint, ...]:
    """Return the endpoints that describe *table*. It is called at each request."""

    def listed(_: Request) -> Answer:
        return Answer(index(table()).encode(), TEXT)

    return (
        Endpoint("get-index", "GET", "/", "This list.", listed, media_type="text/plain"),
        Endpoint("list-endpoints", "GET", "/index", "This list.", listed, media_type="text/plain"),
        Endpoint(
            "get-openapi",
            "GET",
            "/openapi.json",
            "This interface as OpenAPI 3.1.",
            lambda _: json_answer(openapi_document(table())),
        ),
    )


def index(table: Table) -> str:
    """List every endpoint, one per line."""
    lines = [
        f"{method:<6} {path:<16} {served.endpoint.summary}"
        + (f" (plugin {served.plugin})" if served.plugin else "")
        for path, methods in table.items()
        for method, served in methods.items()
    ]
    return "\n".join([f"Temper agent {__version__}", "", *lines, ""])
