"""Logging of the agent: structured events on stderr, as JSON unless stderr is a terminal.

JSON is written in ASCII. On a terminal each text is made visible before the colours are added.
"""

import json
import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from temper_core.stderr_stream import StderrStream
from temper_core.visible_text import own_sequences, printable, visible

WITH_LINES = frozenset({"exception", "stack"})
LONGEST_TEXT = 10_000
"""Characters of a text in a line of the log. The texts of plugins and tenants may be longer."""
MOST_ITEMS = 100
"""Items of a list in a line of the log."""


@contextmanager
def _without(module: str) -> Iterator[None]:
    """Hide *module* from imports in this block, for which it is optional."""
    modules: dict[str, Any] = sys.modules
    if module in modules:
        yield
        return
    modules[module] = None
    try:
        yield
    finally:
        del modules[module]


# rich would render tracebacks, which these logs have as text, at 3 MiB of an agent's memory.
with _without("rich"):
    import structlog


def configure_logs(level: str = "info") -> None:
    """Configure structlog for this process. A command calls it once."""
    stream = _stream()
    renderer: structlog.typing.Processor = (
        partial(_in_colours, stream) if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _bounded,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
    )


def _stream() -> Any:  # noqa: ANN401 - a text stream, or what stands in its place in a test
    """Return stderr as a stream that waits for no reader. One without a descriptor stays."""
    try:
        descriptor = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return sys.stderr
    return StderrStream(descriptor, _dropped_in_words if sys.stderr.isatty() else _dropped_as_json)


def _dropped_as_json(lines: int) -> str:
    return json.dumps({"event": "log_lines_dropped", "lines": lines, "level": "warning"}) + "\n"


def _dropped_in_words(lines: int) -> str:
    return f"log_lines_dropped lines={lines}\n"


def _bounded(
    logger: Any,  # noqa: ANN401, ARG001 - structlog's
    name: str,  # noqa: ARG001 - structlog's
    event: MutableMapping[str, Any],
) -> MutableMapping[str, Any]:
    """Cut long texts and lists, which would fill the node's log."""
    return {key: _cut(value) for key, value in event.items()}


def _cut(value: object) -> object:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]}… ({len(value) - LONGEST_TEXT} more characters)"
    if isinstance(value, list | tuple):
        return [_cut(item) for item in value[:MOST_ITEMS]]
    return value


def _in_colours(stream: Any, logger: Any, name: str, event: MutableMapping[str, Any]) -> str:  # noqa: ANN401 - structlog's
    shown = {printable(str(key)): _shown(key, value) for key, value in event.items()}
    return own_sequences(str(structlog.dev.ConsoleRenderer()(logger, name, shown)), stream)


def _shown(key: str, value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return visible(text) if key in WITH_LINES else printable(text)
