"""Reads Kubernetes objects from files in JSON or YAML, of bounded size."""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from temper_core import DocumentError

LARGEST_BYTES = 64 * 1024 * 1024
STANDARD_INPUT = "-"


def read_objects(path: Path, source: str) -> list[Any]:
    """Return the documents of a file (``-`` is standard input). Raise DocumentError for a bad one.

    *source* is its name in messages.
    """
    text = _text(path, source)
    try:
        if text.lstrip().startswith(("{", "[")):
            return [json.loads(text)]
        # Not libyaml's loader: deeply nested input would crash the process there.
        return list(yaml.safe_load_all(text))
    except (ValueError, LookupError, TypeError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise DocumentError(source, [f"is neither JSON nor YAML: {reason}"]) from error


def _text(path: Path, source: str) -> str:
    try:
        if str(path) == STANDARD_INPUT:
            content = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            with path.open("rb") as file:
                content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise DocumentError(source, [f"is larger than {LARGEST_BYTES} bytes"])
        return content.decode("utf-8-sig")
    except OSError as error:
        raise DocumentError(source, [error.strerror or str(error)]) from error
    except ValueError as error:
        raise DocumentError(source, ["is not UTF-8 text"]) from error
