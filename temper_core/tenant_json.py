"""Parses JSON in which a tenant chose the nesting, the length of numbers, and single bytes.

A user with the right to create a pod chooses its ``managedFields``, which the API server keeps as
they are. They must not make the list of all pods unreadable.
"""

import json
import re
from typing import Any

MOST_DEPTH = 100
"""A value that is nested deeper becomes null. An object of Kubernetes has some twenty levels."""
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
"""A string, cut at the end of the text or not, or a bracket."""


def parse_tenant_json(text: str | bytes) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of *text*. A value nested too deep, and a number too long, becomes null.

    Bytes that are not UTF-8 become U+FFFD. Raises ValueError for text that is not JSON.
    """
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:
        cut = cut_deep_values(text)
        if cut is None or text[cut[1] :].strip():
            raise ValueError("the text is not one JSON value") from error
        return parse_cut_value(cut[0])


def cut_deep_values(text: str, at: int = 0) -> tuple[str, int] | None:
    """Return the list or object that begins at *at*, and its end. None if it is not complete.

    It has null in place of each value that is nested too deep.
    """
    parts, kept_from, depth = [], at, 0
    for token in _TOKEN.finditer(text, at):
        sign = text[token.start()]
        if sign in "[{":
            depth += 1
            if depth == MOST_DEPTH + 1:
                parts += [text[kept_from : token.start()], "null"]
        elif sign in "]}":
            if depth == MOST_DEPTH + 1:
                kept_from = token.end()
            depth -= 1
            if depth <= 0:
                parts.append(text[kept_from : token.end()])
                return "".join(parts), token.end()
    return None


def parse_cut_value(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of *text* with null in place of each integer that is too long for Python."""
    return json.loads(text, parse_int=_integer)


def _integer(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:
        return None
