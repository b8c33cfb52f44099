"""Metrics are scraped from a running server: its fixtures are used here as well."""

from tests.core.server.conftest import (  # noqa: F401 - pytest finds fixtures by name
    agent,
    fakes,
    lasting_agent,
    lasting_view,
    server_threads,
    start,
    token_file,
    view,
)
